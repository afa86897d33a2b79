"""Data of files: read, write, append, truncate, holes, copies, open files that lose their name."""

import errno
import fcntl
import hashlib
import os
import threading

from runner import DIR, Skip, case, equal, names, raises, read, write
from syscalls import (
    FALLOC_FL_KEEP_SIZE,
    FALLOC_FL_PUNCH_HOLE,
    FALLOC_FL_ZERO_RANGE,
    fallocate,
    link_fd,
)

MIB = 1 << 20


def _pattern(length, seed=1):
    block = hashlib.sha256(b'%d' % seed).digest() * 128
    return (block * (length // len(block) + 1))[:length]


def _big():
    with open('big', 'wb') as file:
        file.write(_pattern(3 * MIB + 777))


def _get(path):
    with open(path, 'rb') as file:
        return file.read()


@case('overwrite in the middle', {'f': '0123456789'})
def _():
    fd = os.open('f', os.O_RDWR)
    os.pwrite(fd, b'XX', 4)
    equal(os.pread(fd, 20, 0), b'0123XX6789')
    os.close(fd)
    equal(read('f'), '0123XX6789')


@case('write beyond the end leaves zeros', {'f': 'ab'})
def _():
    fd = os.open('f', os.O_RDWR)
    os.pwrite(fd, b'z', 10)
    os.close(fd)
    equal(read('f'), 'ab' + '\0' * 8 + 'z')


@case('append', {'f': 'one'})
def _():
    write('f', ' two', 'a')
    write('f', ' three', 'a')
    equal(read('f'), 'one two three')


@case('O_APPEND ignores the position, also of pwrite', {'f': 'one'})
def _():
    fd = os.open('f', os.O_RDWR | os.O_APPEND)
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, b'two')
    os.pwrite(fd, b'!', 0)
    equal(os.pread(fd, 20, 0), b'onetwo!')
    os.close(fd)


@case('two appenders do not overwrite each other', {'f': ''})
def _():
    first = os.open('f', os.O_WRONLY | os.O_APPEND)
    second = os.open('f', os.O_WRONLY | os.O_APPEND)
    for i in range(50):
        os.write(first, b'a%02d\n' % i)
        os.write(second, b'b%02d\n' % i)
    os.close(first)
    os.close(second)
    lines = read('f').split()
    equal(len(lines), 100)
    equal(lines[::2], ['a%02d' % i for i in range(50)])


@case('appending threads', {'f': 'start\n'})
def _():
    def work(number):
        fd = os.open('f', os.O_WRONLY | os.O_APPEND)
        for i in range(100):
            os.write(fd, b'%d-%03d\n' % (number, i))
        os.close(fd)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = read('f').split()
    equal(len(lines), 601)
    equal(len(set(lines)), 601)


@case('a handle for reading sees what another writes', {'f': 'old content'})
def _():
    reader = os.open('f', os.O_RDONLY)
    equal(os.pread(reader, 20, 0), b'old content')
    write('f', 'new', 'w')
    equal(os.pread(reader, 20, 0), b'new')
    writer = os.open('f', os.O_WRONLY)
    os.pwrite(writer, b'er content', 3)
    equal(os.pread(reader, 20, 0), b'newer content')
    os.close(reader)
    os.close(writer)


@case('wrong direction', {'f': 'x'})
def _():
    fd = os.open('f', os.O_RDONLY)
    raises(errno.EBADF, os.write, fd, b'y')
    raises(errno.EINVAL, os.ftruncate, fd, 0)
    os.close(fd)
    fd = os.open('f', os.O_WRONLY)
    raises(errno.EBADF, os.read, fd, 1)
    os.close(fd)


@case('reading a folder', {'d': DIR})
def _():
    fd = os.open('d', os.O_RDONLY)
    raises(errno.EISDIR, os.read, fd, 1)
    os.close(fd)


@case('reading at and beyond the end', {'f': 'abc'})
def _():
    fd = os.open('f', os.O_RDONLY)
    equal(os.pread(fd, 10, 3), b'')
    equal(os.pread(fd, 10, 1000), b'')
    equal(os.pread(fd, 10, 2), b'c')
    os.close(fd)


@case('truncate shorter, longer, and through a handle', {'f': '0123456789'})
def _():
    os.truncate('f', 4)
    equal(read('f'), '0123')
    os.truncate('f', 6)
    equal(read('f'), '0123\0\0')
    fd = os.open('f', os.O_RDWR)
    os.ftruncate(fd, 2)
    equal(os.fstat(fd).st_size, 2)
    os.ftruncate(fd, 0)
    os.close(fd)
    equal(os.stat('f').st_size, 0)
    raises(errno.EINVAL, os.truncate, 'f', -1)


@case('truncate a folder', {'d': DIR})
def _():
    raises(errno.EISDIR, os.truncate, 'd', 0)


@case('truncate cuts what the cache holds', {'f': 'x' * 9000})
def _():
    equal(len(read('f')), 9000)
    os.truncate('f', 5000)
    os.truncate('f', 9000)
    equal(read('f'), 'x' * 5000 + '\0' * 4000)


@case('a big file, read', _big)
def _():
    equal(_get('big'), _pattern(3 * MIB + 777))


@case('a big file, one byte changed', _big)
def _():
    fd = os.open('big', os.O_RDWR)
    os.pwrite(fd, b'!', 2 * MIB)
    os.close(fd)
    expected = bytearray(_pattern(3 * MIB + 777))
    expected[2 * MIB] = ord('!')
    equal(_get('big') == bytes(expected), True)


@case('a big file, written in odd pieces')
def _():
    data = _pattern(5 * MIB + 13, 7)
    fd = os.open('big', os.O_CREAT | os.O_WRONLY, 0o644)
    at = 0
    sizes = [1, 4095, 4097, 65537, 1 << 20, (1 << 20) + 1, 300001]
    turn = 0
    while at < len(data):
        at += os.write(fd, data[at : at + sizes[turn % len(sizes)]])
        turn += 1
    os.close(fd)
    equal(_get('big') == data, True)


@case('readv and writev', {'f': ''})
def _():
    fd = os.open('f', os.O_RDWR)
    equal(os.pwritev(fd, [b'ab', b'', b'cde'], 1), 5)
    parts = [bytearray(2), bytearray(10)]
    equal(os.preadv(fd, parts, 0), 6)
    equal((bytes(parts[0]), bytes(parts[1][:4])), (b'\0a', b'bcde'))
    os.close(fd)


@case('O_DIRECT reads and writes', _big)
def _():
    import mmap

    try:
        fd = os.open('big', os.O_RDWR | os.O_DIRECT)
    except OSError as error:
        raise Skip('no O_DIRECT here: %s' % error) from error
    buffer = mmap.mmap(-1, 8192)
    equal(os.preadv(fd, [buffer], 4096), 8192)
    equal(buffer[:] == _pattern(3 * MIB + 777)[4096 : 4096 + 8192], True)
    buffer[:] = b'D' * 8192
    equal(os.pwritev(fd, [buffer], 0), 8192)
    os.close(fd)
    equal(_get('big')[:8193], b'D' * 8192 + _pattern(8193)[8192:])


@case('removed while open: reading, writing, statting go on', {'f': 'content'})
def _():
    fd = os.open('f', os.O_RDWR)
    os.unlink('f')
    equal(os.pread(fd, 20, 0), b'content')
    equal(os.pwrite(fd, b'CON', 0), 3)
    equal(os.pread(fd, 20, 0), b'CONtent')
    status = os.fstat(fd)
    equal((status.st_nlink, status.st_size), (0, 7))
    os.ftruncate(fd, 100)
    equal(os.fstat(fd).st_size, 100)
    os.fchmod(fd, 0o600)
    equal(os.fstat(fd).st_mode & 0o777, 0o600)
    os.fsync(fd)
    os.close(fd)
    equal(names(), [])


@case('removed while open, and a new file of that name', {'f': 'old'})
def _():
    fd = os.open('f', os.O_RDWR)
    os.unlink('f')
    write('f', 'new')
    os.pwrite(fd, b'OLD', 0)
    equal(read('f'), 'new')
    equal(os.pread(fd, 10, 0), b'OLD')
    equal(os.fstat(fd).st_ino != os.stat('f').st_ino, True)
    os.close(fd)


@case('opened again through /proc/self/fd after it was removed', {'f': 'text'})
def _():
    fd = os.open('f', os.O_RDWR)
    os.unlink('f')
    again = os.open('/proc/self/fd/%d' % fd, os.O_RDWR)
    os.write(again, b'T')
    equal(os.pread(fd, 10, 0), b'Text')
    os.close(again)
    os.close(fd)


@case('O_TMPFILE: no name, then one')
def _():
    try:
        fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o640)
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            raise Skip('no O_TMPFILE here') from error
        raise
    os.write(fd, b'hidden')
    equal(names(), [])
    equal(os.fstat(fd).st_nlink, 0)
    link_fd(fd, 'shown')
    equal(os.fstat(fd).st_nlink, 1)
    equal(read('shown'), 'hidden')
    os.write(fd, b'!')
    os.close(fd)
    equal(read('shown'), 'hidden!')
    equal(os.stat('shown').st_mode & 0o777, 0o640)


@case('O_TMPFILE with O_EXCL gets no name')
def _():
    fd = os.open('.', os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600)
    raises(errno.ENOENT, link_fd, fd, 'shown')
    os.close(fd)


@case('fallocate makes room', {'f': 'abc'})
def _():
    fd = os.open('f', os.O_RDWR)
    fallocate(fd, 0, 0, 100000)
    equal(os.fstat(fd).st_size, 100000)
    equal(os.fstat(fd).st_blocks * 512 >= 100000, True)
    equal(os.pread(fd, 5, 0), b'abc\0\0')
    fallocate(fd, FALLOC_FL_KEEP_SIZE, 100000, 100000)
    equal(os.fstat(fd).st_size, 100000)
    os.close(fd)


@case('fallocate punches holes', _big)
def _():
    fd = os.open('big', os.O_RDWR)
    size = os.fstat(fd).st_size
    blocks = os.fstat(fd).st_blocks
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MIB, MIB)
    equal(os.fstat(fd).st_size, size)
    equal(os.fstat(fd).st_blocks < blocks, True)
    data = os.pread(fd, size, 0)
    whole = _pattern(3 * MIB + 777)
    equal(data == whole[:MIB] + b'\0' * MIB + whole[2 * MIB :], True)
    os.close(fd)


@case('fallocate zeroes a range', _big)
def _():
    fd = os.open('big', os.O_RDWR)
    try:
        fallocate(fd, FALLOC_FL_ZERO_RANGE, 1000, 5000)
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            raise Skip('no FALLOC_FL_ZERO_RANGE here') from error
        raise
    equal(os.pread(fd, 6001, 0) == _pattern(1000) + b'\0' * 5000 + _pattern(6001)[6000:], True)
    os.close(fd)


@case('fallocate: what it refuses', {'f': 'abc', 'd': DIR})
def _():
    fd = os.open('f', os.O_RDWR)
    raises(errno.EINVAL, fallocate, fd, 0, 0, 0)
    raises(errno.EINVAL, fallocate, fd, 0, -1, 10)
    raises(errno.EOPNOTSUPP, fallocate, fd, FALLOC_FL_PUNCH_HOLE, 0, 10)
    os.close(fd)
    fd = os.open('f', os.O_RDONLY)
    raises(errno.EBADF, fallocate, fd, 0, 0, 10)
    os.close(fd)


def _sparse():
    fd = os.open('sparse', os.O_CREAT | os.O_RDWR, 0o644)
    os.ftruncate(fd, 8 * MIB)
    os.pwrite(fd, b'data', 4 * MIB)
    os.fsync(fd)
    os.close(fd)


@case('SEEK_DATA and SEEK_HOLE', _sparse)
def _():
    fd = os.open('sparse', os.O_RDWR)
    start = os.lseek(fd, 0, os.SEEK_DATA)
    equal(start <= 4 * MIB and start > 3 * MIB, True)
    hole = os.lseek(fd, start, os.SEEK_HOLE)
    equal(4 * MIB < hole < 5 * MIB, True)
    raises(errno.ENXIO, os.lseek, fd, hole, os.SEEK_DATA)
    raises(errno.ENXIO, os.lseek, fd, 8 * MIB, os.SEEK_HOLE)
    equal(os.lseek(fd, 0, os.SEEK_HOLE), 0)
    os.close(fd)


@case('a sparse file stays sparse when it is changed', _sparse)
def _():
    fd = os.open('sparse', os.O_RDWR)
    os.pwrite(fd, b'DATA', 4 * MIB)
    os.fsync(fd)
    equal(os.fstat(fd).st_blocks * 512 < MIB, True)
    equal(os.fstat(fd).st_size, 8 * MIB)
    equal(os.pread(fd, 8, 4 * MIB - 2), b'\0\0DATA\0\0')
    os.close(fd)


@case('a sparse file takes no room', _sparse)
def _():
    equal(os.stat('sparse').st_blocks * 512 < MIB, True)
    os.chmod('sparse', 0o600)
    os.rename('sparse', 'other')
    equal(os.stat('other').st_blocks * 512 < MIB, True)


@case('4 GiB and more: offsets of 64 bits')
def _():
    fd = os.open('huge', os.O_CREAT | os.O_RDWR, 0o644)
    os.pwrite(fd, b'far', 5 << 30)
    equal(os.fstat(fd).st_size, (5 << 30) + 3)
    equal(os.pread(fd, 10, 5 << 30), b'far')
    equal(os.pread(fd, 2, 3 << 30), b'\0\0')
    equal(os.fstat(fd).st_blocks * 512 < MIB, True)
    os.close(fd)


@case('copy_file_range', _big)
def _():
    source = os.open('big', os.O_RDONLY)
    target = os.open('copy', os.O_CREAT | os.O_RDWR, 0o644)
    left, at = os.fstat(source).st_size, 0
    while left:
        done = os.copy_file_range(source, target, left, at, at)
        assert done > 0
        at, left = at + done, left - done
    os.close(source)
    os.close(target)
    equal(_get('copy') == _get('big'), True)


@case('copy_file_range of a part, into the middle', {'a': '0123456789', 'b': 'abcdefghij'})
def _():
    source = os.open('a', os.O_RDONLY)
    target = os.open('b', os.O_RDWR)
    equal(os.copy_file_range(source, target, 3, 2, 5), 3)
    equal(os.copy_file_range(source, target, 100, 8, 8), 2)
    equal(os.copy_file_range(source, target, 100, 50, 0), 0)
    os.close(source)
    os.close(target)
    equal(read('b'), 'abcde23489')


@case('sendfile', _big)
def _():
    source = os.open('big', os.O_RDONLY)
    target = os.open('copy', os.O_CREAT | os.O_WRONLY, 0o644)
    at, size = 0, os.fstat(source).st_size
    while at < size:
        at += os.sendfile(target, source, at, size - at)
    os.close(source)
    os.close(target)
    equal(_get('copy') == _get('big'), True)


@case('splice through a pipe', {'f': 'through a pipe'})
def _():
    if not hasattr(os, 'splice'):
        raise Skip('this Python has no os.splice')
    reader, writer = os.pipe()
    source = os.open('f', os.O_RDONLY)
    target = os.open('g', os.O_CREAT | os.O_WRONLY, 0o644)
    equal(os.splice(source, writer, 100), 14)
    equal(os.splice(reader, target, 14), 14)
    equal(read('g'), 'through a pipe')


@case('fsync, fdatasync, folders too', {'f': 'x', 'd': DIR})
def _():
    fd = os.open('f', os.O_RDWR)
    os.write(fd, b'y')
    os.fsync(fd)
    os.fdatasync(fd)
    os.close(fd)
    fd = os.open('d', os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


@case('O_SYNC and O_DSYNC writes')
def _():
    for flag in (os.O_SYNC, os.O_DSYNC):
        fd = os.open('f', os.O_CREAT | os.O_WRONLY | flag, 0o644)
        equal(os.write(fd, b'synced'), 6)
        os.close(fd)
    equal(read('f'), 'synced')


@case('descriptors share a position after dup, not after open', {'f': '0123456789'})
def _():
    first = os.open('f', os.O_RDONLY)
    second = os.dup(first)
    third = os.open('f', os.O_RDONLY)
    os.read(first, 3)
    equal(os.read(second, 2), b'34')
    equal(os.read(third, 2), b'01')


@case('O_NONBLOCK and F_SETFL', {'f': 'abc'})
def _():
    fd = os.open('f', os.O_RDWR | os.O_NONBLOCK)
    equal(os.read(fd, 3), b'abc')
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, b'd')
    equal(os.pread(fd, 10, 0), b'abcd')
    os.close(fd)


@case('an ioctl that no file has', {'f': ''})
def _():
    fd = os.open('f', os.O_RDWR)
    raises(errno.ENOTTY, fcntl.ioctl, fd, 0x5401, b'\0' * 64)
    os.close(fd)


@case('many open files at once', lambda: [write('f%03d' % i, str(i)) for i in range(400)])
def _():
    open_files = [os.open('f%03d' % i, os.O_RDWR) for i in range(400)]
    for i, fd in enumerate(open_files):
        os.pwrite(fd, b'n', len(str(i)))
    for i, fd in enumerate(open_files):
        equal(os.pread(fd, 10, 0), b'%dn' % i)
        os.close(fd)


@case('parallel writers to different parts of one file', _big)
def _():
    fd = os.open('big', os.O_RDWR)

    def work(number):
        for i in range(16):
            os.pwrite(fd, b'%d' % number * 8192, number * 131072 + i * 8192)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(fd)
    data = _get('big')
    equal(data[: 8 * 131072] == b''.join(b'%d' % n * 131072 for n in range(8)), True)
    equal(data[8 * 131072 :] == _pattern(3 * MIB + 777)[8 * 131072 :], True)


@case('the first write of many threads at once', {'f': 'x' * 100000})
def _():
    def work(number):
        fd = os.open('f', os.O_RDWR)
        os.pwrite(fd, b'%d' % number * 1000, number * 1000)
        os.close(fd)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = ''.join(('%d' % n) * 1000 for n in range(9)) + 'x' * 91000
    equal(read('f') == expected, True)
