"""Mappings, locks and watches: what the kernel keeps about an inode (mmap, flock, fcntl, inotify)."""

import errno
import fcntl
import mmap
import os
import signal
import struct
import time

from runner import DIR, case, equal, names, raises, read, write
from syscalls import Inotify

PAGE = mmap.PAGESIZE


def _child(body):
    """Runs in a child; True if it said so."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if body() else 1)
        except BaseException:
            os._exit(2)
    return os.waitpid(pid, 0)[1] == 0


def _map(path, length, access):
    fd = os.open(path, os.O_RDWR)
    mapped = mmap.mmap(fd, length, access=access)
    os.close(fd)
    return mapped


@case('mmap shared: writes reach the file', {'f': 'a' * 10000})
def _():
    mapped = _map('f', 10000, mmap.ACCESS_WRITE)
    mapped[0:5] = b'HELLO'
    mapped[9000] = ord('Z')
    equal(read('f')[:6], 'HELLOa')
    mapped.flush()
    mapped.close()
    data = read('f')
    equal((data[:6], data[9000], len(data)), ('HELLOa', 'Z', 10000))


@case('mmap shared: sees writes through descriptors', {'f': 'a' * 5000})
def _():
    mapped = _map('f', 5000, mmap.ACCESS_WRITE)
    equal(mapped[100], ord('a'))
    fd = os.open('f', os.O_RDWR)
    os.pwrite(fd, b'Q', 100)
    equal(mapped[100], ord('Q'))
    mapped[101] = ord('R')
    equal(os.pread(fd, 2, 100), b'QR')
    os.close(fd)
    mapped.close()


@case('mmap private: writes stay private', {'f': 'abc'})
def _():
    mapped = _map('f', 3, mmap.ACCESS_COPY)
    mapped[0:1] = b'X'
    equal(mapped[:], b'Xbc')
    mapped.close()
    equal(read('f'), 'abc')


@case('mmap for reading sees later writes', {'f': 'old content'})
def _():
    fd = os.open('f', os.O_RDONLY)
    mapped = mmap.mmap(fd, 11, access=mmap.ACCESS_READ)
    equal(mapped[:3], b'old')
    writer = os.open('f', os.O_WRONLY)
    os.pwrite(writer, b'new', 0)
    os.close(writer)
    equal(mapped[:3], b'new')
    os.close(fd)


@case('mmap of a file that loses its name', {'f': 'a' * PAGE})
def _():
    mapped = _map('f', PAGE, mmap.ACCESS_WRITE)
    os.unlink('f')
    mapped[0:3] = b'xyz'
    mapped.flush()
    equal(mapped[:4], b'xyza')
    mapped.close()
    equal(names(), [])


@case('mmap shared between processes', {'f': '\0' * PAGE})
def _():
    mapped = _map('f', PAGE, mmap.ACCESS_WRITE)

    def other():
        own = _map('f', PAGE, mmap.ACCESS_WRITE)
        own[10:15] = b'child'
        own.flush()
        return True

    equal(_child(other), True)
    equal(mapped[10:15], b'child')


@case('mmap beyond the end of the file is SIGBUS', {'f': 'x'})
def _():
    mapped = _map('f', 1, mmap.ACCESS_READ)
    os.truncate('f', 0)

    def touch():
        return mapped[0] >= 0

    pid = os.fork()
    if pid == 0:
        touch()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    equal(os.WIFSIGNALED(status) and os.WTERMSIG(status), signal.SIGBUS)


@case('mmap of a new file that grows')
def _():
    fd = os.open('f', os.O_CREAT | os.O_RDWR, 0o644)
    os.ftruncate(fd, 4 * PAGE)
    mapped = mmap.mmap(fd, 4 * PAGE)
    mapped[3 * PAGE : 3 * PAGE + 4] = b'last'
    mapped.flush()
    os.fsync(fd)
    equal(os.pread(fd, 4, 3 * PAGE), b'last')
    mapped.close()
    os.close(fd)


@case('flock: shared, exclusive, upgraded, freed at close', {'f': ''})
def _():
    first = os.open('f', os.O_RDWR)
    second = os.open('f', os.O_RDWR)
    fcntl.flock(first, fcntl.LOCK_SH)
    fcntl.flock(second, fcntl.LOCK_SH | fcntl.LOCK_NB)
    raises(errno.EWOULDBLOCK, fcntl.flock, first, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(second, fcntl.LOCK_UN)
    fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
    raises(errno.EWOULDBLOCK, fcntl.flock, second, fcntl.LOCK_SH | fcntl.LOCK_NB)
    os.close(first)
    fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(second)


@case('fcntl locks: ranges, between processes', {'f': 'x' * 100})
def _():
    fd = os.open('f', os.O_RDWR)
    fcntl.lockf(fd, fcntl.LOCK_EX, 10, 0)

    def other():
        own = os.open('f', os.O_RDWR)
        raises(errno.EAGAIN, fcntl.lockf, own, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 5)
        fcntl.lockf(own, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 10)
        return True

    equal(_child(other), True)
    fcntl.lockf(fd, fcntl.LOCK_UN, 10, 0)

    def free():
        own = os.open('f', os.O_RDWR)
        fcntl.lockf(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True

    equal(_child(free), True)


@case('fcntl F_GETLK tells who', {'f': 'x'})
def _():
    fd = os.open('f', os.O_RDWR)
    fcntl.lockf(fd, fcntl.LOCK_EX, 1, 0)
    holder = os.getpid()

    def ask():
        own = os.open('f', os.O_RDWR)
        query = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack('hhqqi4x', fcntl.fcntl(own, fcntl.F_GETLK, query))
        return kind == fcntl.F_WRLCK and pid == holder

    equal(_child(ask), True)


@case('open file description locks', {'f': 'x' * 10})
def _():
    if not hasattr(fcntl, 'F_OFD_SETLK'):
        set_lock = 37
    else:
        set_lock = fcntl.F_OFD_SETLK
    first = os.open('f', os.O_RDWR)
    second = os.open('f', os.O_RDWR)
    lock = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 5, 0)
    fcntl.fcntl(first, set_lock, lock)
    raises(errno.EAGAIN, fcntl.fcntl, second, set_lock, lock)
    os.close(first)
    fcntl.fcntl(second, set_lock, lock)


@case('a lock outlives the rename of its file', {'f': ''})
def _():
    fd = os.open('f', os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.rename('f', 'g')
    other = os.open('g', os.O_RDWR)
    raises(errno.EWOULDBLOCK, fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB)


@case('a lock outlives the first write of its file', {'f': 'x'})
def _():
    fd = os.open('f', os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    write('f', 'changed')
    other = os.open('f', os.O_RDWR)
    raises(errno.EWOULDBLOCK, fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _seen(watch, wanted, seconds=60):
    """Collects events until all wanted are there."""
    found = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found += watch.events()
        if all(any(mask & bit and name == file for mask, name in found) for bit, file in wanted):
            return True
        time.sleep(0.01)
    raise AssertionError('saw %r, wanted %r' % (found, wanted))


@case('inotify sees create, change, rename, removal', {'d/f': 'x', 'd/g': 'y'})
def _():
    watch = Inotify()
    watch.watch('d', 0xFFF)
    write('d/new', 'n')
    write('d/f', 'changed')
    os.rename('d/g', 'd/h')
    os.unlink('d/new')
    os.chmod('d/f', 0o600)
    _seen(
        watch,
        [
            (Inotify.CREATE, 'new'),
            (Inotify.MODIFY, 'f'),
            (Inotify.CLOSE_WRITE, 'f'),
            (Inotify.MOVED_FROM, 'g'),
            (Inotify.MOVED_TO, 'h'),
            (Inotify.DELETE, 'new'),
            (Inotify.ATTRIB, 'f'),
        ],
    )


@case('inotify on a file sees its end', {'f': 'x'})
def _():
    watch = Inotify()
    watch.watch('f', 0xFFF)
    write('f', 'y')
    os.unlink('f')
    _seen(watch, [(Inotify.MODIFY, ''), (Inotify.DELETE_SELF, '')])


@case('inotify sees another process', {'d': DIR})
def _():
    watch = Inotify()
    watch.watch('d', 0xFFF)
    equal(_child(lambda: write('d/f', 'by a child') or True), True)
    _seen(watch, [(Inotify.CREATE, 'f'), (Inotify.CLOSE_WRITE, 'f')])


@case('a file lease or its refusal does not hang', {'f': 'x'})
def _():
    fd = os.open('f', os.O_RDONLY)
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        assert error.errno in (errno.EINVAL, errno.EAGAIN), error
    os.close(fd)
