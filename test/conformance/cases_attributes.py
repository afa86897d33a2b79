"""Modes, owners, times, inode numbers, extended attributes, statfs (chmod, chown, utimensat, stat, setxattr)."""

import errno
import os
import stat
import time

from runner import DIR, Link, NOBODY, Skip, case, equal, names, raises, read, write
from syscalls import birth_time

OLD = 1_000_000_000_123_456_789
ROOT = os.getuid() == 0


def _mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def _old(*paths):
    for path in paths:
        os.utime(path, ns=(OLD, OLD))


@case('chmod: every bit', {'f': 'x', 'd': DIR})
def _():
    for mode in (0o000, 0o777, 0o4755, 0o2755, 0o1777, 0o6711, 0o640, 0o444):
        os.chmod('f', mode)
        os.chmod('d', mode)
        equal((_mode('f'), _mode('d')), (mode, mode))
    os.chmod('d', 0o755)
    equal(read('f'), 'x')


@case('chmod keeps content, times and owner', {'f': 'content'})
def _():
    _old('f')
    os.chown('f', 5, 6)
    os.chmod('f', 0o600)
    status = os.stat('f')
    equal((status.st_uid, status.st_gid, status.st_mtime_ns), (5, 6, OLD))
    equal(read('f'), 'content')
    write('f', 'more', 'a')
    equal((_mode('f'), read('f')), (0o600, 'contentmore'))


@case('fchmod and fchown', {'f': 'x'})
def _():
    fd = os.open('f', os.O_RDONLY)
    os.fchmod(fd, 0o611)
    os.fchown(fd, 7, 8)
    status = os.fstat(fd)
    equal((stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid), (0o611, 7, 8))
    os.close(fd)
    equal(_mode('f'), 0o611)


@case('chown: one, the other, none', {'f': '', 'd': DIR})
def _():
    for path in ('f', 'd'):
        os.chown(path, 10, -1)
        os.chown(path, -1, 11)
        os.chown(path, -1, -1)
        status = os.stat(path)
        equal((status.st_uid, status.st_gid), (10, 11))
    os.chown('f', 4294967294, 65535)
    equal(os.stat('f').st_uid, 4294967294)


@case('chown takes suid and sgid', {'f': 'x', 'd': DIR})
def _():
    os.chmod('f', 0o6755)
    os.chown('f', 3, 3)
    equal(_mode('f'), 0o755)
    os.chmod('d', 0o2755)
    os.chown('d', 3, 3)
    equal(_mode('d'), 0o2755)


@case('a write by a user takes suid and sgid', {'f': 'x'}, uid=NOBODY)
def _():
    os.chmod('f', 0o6775)
    write('f', 'y', 'a')
    equal(_mode('f'), 0o775)
    os.chmod('f', 0o4755)
    os.truncate('f', 0)
    equal(_mode('f'), 0o755)
    os.chmod('f', 0o4755)
    os.close(os.open('f', os.O_WRONLY | os.O_TRUNC))
    equal(_mode('f'), 0o755)


@case('a write by root leaves suid', {'f': 'x'})
def _():
    os.chmod('f', 0o4755)
    write('f', 'y', 'a')
    equal(_mode('f'), 0o4755)


@case('a new file in a setgid folder has its group', {'d': DIR})
def _():
    os.chown('d', 0, 50)
    os.chmod('d', 0o2775)
    write('d/f', 'x')
    os.mkdir('d/sub')
    os.symlink('x', 'd/l')
    os.mkfifo('d/p')
    for name in ('f', 'sub', 'l', 'p'):
        equal(os.lstat('d/' + name).st_gid, 50)
    equal(_mode('d/sub') & 0o2000, 0o2000)
    equal(_mode('d/f') & 0o2000, 0)


@case('new files belong to who makes them', uid=NOBODY)
def _():
    write('f', 'x')
    os.mkdir('d')
    os.symlink('x', 'l')
    os.mkfifo('p')
    for name in ('f', 'd', 'l', 'p'):
        status = os.lstat(name)
        equal((status.st_uid, status.st_gid), (NOBODY, NOBODY))


@case('utimes: set, now, omit', {'f': 'x', 'd': DIR})
def _():
    for path in ('f', 'd'):
        os.utime(path, ns=(OLD, OLD + 1))
        status = os.stat(path)
        equal((status.st_atime_ns, status.st_mtime_ns), (OLD, OLD + 1))
        before = time.time_ns()
        os.utime(path)
        equal(abs(os.stat(path).st_mtime_ns - before) < 120_000_000_000, True)


@case('utimes before 1970 and after 2038', {'f': 'x'})
def _():
    for seconds in (-5_000_000, 0, 4_000_000_000):
        os.utime('f', ns=(seconds * 10**9 + 7, seconds * 10**9 + 8))
        equal(os.stat('f').st_mtime_ns, seconds * 10**9 + 8)


@case('times survive a later change of mode and name', {'f': 'x'})
def _():
    _old('f')
    os.chmod('f', 0o600)
    os.rename('f', 'g')
    os.link('g', 'h')
    equal(os.stat('h').st_mtime_ns, OLD)


@case('times of an existing file stay until it is written', lambda: (write('f', 'x'), _old('f')))
def _():
    equal(os.stat('f').st_mtime_ns, OLD)
    fd = os.open('f', os.O_RDWR)
    equal(os.fstat(fd).st_mtime_ns, OLD)
    os.write(fd, b'y')
    os.close(fd)
    equal(os.stat('f').st_mtime_ns > OLD, True)


@case('a write sets mtime and ctime', {'f': 'x'})
def _():
    _old('f')
    before = os.stat('f')
    write('f', 'y', 'a')
    after = os.stat('f')
    equal(after.st_mtime_ns > OLD, True)
    equal(after.st_ctime_ns >= before.st_ctime_ns, True)


@case('a truncation sets mtime', {'f': 'xyz'})
def _():
    _old('f')
    os.truncate('f', 1)
    equal(os.stat('f').st_mtime_ns > OLD, True)
    _old('f')
    os.close(os.open('f', os.O_WRONLY | os.O_TRUNC))
    equal(os.stat('f').st_mtime_ns > OLD, True)


@case('chmod, chown and link set ctime, not mtime', {'f': 'x'})
def _():
    _old('f')
    for act in (lambda: os.chmod('f', 0o600), lambda: os.chown('f', 1, 1), lambda: os.link('f', 'g')):
        before = os.stat('f').st_ctime_ns
        time.sleep(0.02)
        act()
        equal(os.stat('f').st_ctime_ns > before, True)
        equal(os.stat('f').st_mtime_ns, OLD)


@case('create, remove, rename set the folder\'s times', {'d/f': 'x', 'd/sub': DIR})
def _():
    for act in (
        lambda: write('d/new', ''),
        lambda: os.unlink('d/new'),
        lambda: os.mkdir('d/m'),
        lambda: os.rmdir('d/m'),
        lambda: os.symlink('x', 'd/l'),
        lambda: os.link('d/f', 'd/g'),
        lambda: os.rename('d/g', 'd/h'),
    ):
        _old('d')
        act()
        equal(os.stat('d').st_mtime_ns > OLD, True)


@case('a write to a file does not set its folder\'s times', {'d/f': 'x'})
def _():
    _old('d')
    write('d/f', 'y', 'a')
    os.chmod('d/f', 0o600)
    equal(os.stat('d').st_mtime_ns, OLD)


@case('a folder\'s times can be set after changes below', {'d/f': 'x'})
def _():
    write('d/g', 'y')
    _old('d')
    equal(os.stat('d').st_mtime_ns, OLD)
    equal(read('d/g'), 'y')
    equal(os.stat('d').st_mtime_ns, OLD)


@case('inode numbers: stable over write, chmod, rename; unique', {'f': 'x', 'd/g': 'y'})
def _():
    file, folder = os.stat('f').st_ino, os.stat('d').st_ino
    write('f', 'changed')
    equal(os.stat('f').st_ino, file)
    os.chmod('f', 0o600)
    os.rename('f', 'd/f')
    equal(os.stat('d/f').st_ino, file)
    write('d/new', '')
    equal(os.stat('d').st_ino, folder)
    os.rename('d', 'e')
    equal(os.stat('e').st_ino, folder)
    every = [os.stat(p).st_ino for p in ('.', 'e', 'e/f', 'e/g', 'e/new')]
    equal(len(set(every)), len(every))


@case('one device number for files and folders', {'f': 'x', 'd/g': 'y'})
def _():
    write('new', '')
    equal(len({os.stat(p).st_dev for p in ('.', 'f', 'd', 'd/g', 'new')}), 1)


@case('sizes and blocks', {'f': 'x' * 5000})
def _():
    status = os.stat('f')
    equal(status.st_size, 5000)
    equal(status.st_blksize >= 512, True)
    write('g', 'y' * 100000)
    fd = os.open('g', os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    equal(os.stat('g').st_blocks * 512 >= 100000, True)


@case('birth time: once, for ever', {'f': 'x'})
def _():
    born = birth_time('f')
    if born is None:
        raise Skip('no birth times here')
    write('f', 'changed')
    os.chmod('f', 0o600)
    os.rename('f', 'g')
    equal(birth_time('g'), born)
    time.sleep(0.02)
    write('new', '')
    equal(birth_time('new') > born, True)


@case('statfs', {'f': ''})
def _():
    status = os.statvfs('f')
    equal(status.f_namemax, 255)
    equal(status.f_blocks > 0 and status.f_bfree <= status.f_blocks, True)
    equal(status.f_bsize >= 512, True)


def _needs_xattrs(path='f'):
    try:
        os.setxattr(path, 'user.probe', b'')
        os.removexattr(path, 'user.probe')
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            raise Skip('no user xattrs here') from error
        raise


def _with_xattrs():
    write('f', 'x')
    os.mkdir('d')
    try:
        os.setxattr('f', 'user.old', b'value')
        os.setxattr('d', 'user.folder', b'\0\xff')
    except OSError:
        pass


@case('xattr: set, get, list, remove', {'f': 'x', 'd': DIR})
def _():
    _needs_xattrs()
    for path in ('f', 'd'):
        os.setxattr(path, 'user.a', b'1')
        os.setxattr(path, 'user.b', b'\0\xff\n')
        equal(os.getxattr(path, 'user.b'), b'\0\xff\n')
        equal(sorted(n for n in os.listxattr(path) if n.startswith('user.')), ['user.a', 'user.b'])
        os.removexattr(path, 'user.a')
        raises(errno.ENODATA, os.getxattr, path, 'user.a')
        raises(errno.ENODATA, os.removexattr, path, 'user.a')


@case('xattr: CREATE and REPLACE', {'f': 'x'})
def _():
    _needs_xattrs()
    raises(errno.ENODATA, os.setxattr, 'f', 'user.a', b'1', os.XATTR_REPLACE)
    os.setxattr('f', 'user.a', b'1', os.XATTR_CREATE)
    raises(errno.EEXIST, os.setxattr, 'f', 'user.a', b'2', os.XATTR_CREATE)
    os.setxattr('f', 'user.a', b'3', os.XATTR_REPLACE)
    equal(os.getxattr('f', 'user.a'), b'3')


@case('xattr: an empty value, a long value, a long name', {'f': 'x'})
def _():
    _needs_xattrs()
    os.setxattr('f', 'user.empty', b'')
    equal(os.getxattr('f', 'user.empty'), b'')
    os.setxattr('f', 'user.long', b'v' * 2000)
    equal(os.getxattr('f', 'user.long'), b'v' * 2000)
    os.removexattr('f', 'user.long')
    name = 'user.' + 'n' * 250
    os.setxattr('f', name, b'1')
    equal(os.getxattr('f', name), b'1')
    raises(errno.ERANGE, os.setxattr, 'f', name + 'n', b'1')


@case('xattr: unknown namespace', {'f': 'x'})
def _():
    raises(errno.EOPNOTSUPP, os.setxattr, 'f', 'nonsense.a', b'1')
    raises(errno.EOPNOTSUPP, os.setxattr, 'f', 'a', b'1')


@case('xattr: existing ones stay over write, chmod, rename', _with_xattrs)
def _():
    _needs_xattrs()
    equal(os.getxattr('f', 'user.old'), b'value')
    write('f', 'changed')
    os.chmod('f', 0o600)
    os.rename('f', 'g')
    equal(os.getxattr('g', 'user.old'), b'value')
    os.setxattr('g', 'user.new', b'n')
    os.removexattr('g', 'user.old')
    equal([n for n in os.listxattr('g') if n.startswith('user.')], ['user.new'])
    write('d/in', '')
    equal(os.getxattr('d', 'user.folder'), b'\0\xff')


@case('xattr: trusted is root\'s', {'f': 'x'})
def _():
    try:
        os.setxattr('f', 'trusted.t', b'1')
    except OSError as error:
        raise Skip('no trusted xattrs here') from error
    equal(os.getxattr('f', 'trusted.t'), b'1')
    pid = os.fork()
    if pid == 0:
        os.setresuid(NOBODY, NOBODY, NOBODY)
        try:
            raises(errno.ENODATA, os.getxattr, 'f', 'trusted.t')
            raises(errno.EPERM, os.setxattr, 'f', 'trusted.t', b'2')
            os._exit(0)
        except BaseException:
            os._exit(1)
    equal(os.waitpid(pid, 0)[1], 0)


@case('xattr: user xattrs are not for links and fifos', {'l': Link('x')})
def _():
    os.mkfifo('p')
    raises(errno.EPERM, os.setxattr, 'l', 'user.a', b'1', follow_symlinks=False)
    raises(errno.EPERM, os.setxattr, 'p', 'user.a', b'1')


@case('xattr: they go with the file', {'f': 'x'})
def _():
    _needs_xattrs()
    os.setxattr('f', 'user.a', b'1')
    os.unlink('f')
    write('f', 'new')
    equal([n for n in os.listxattr('f') if n.startswith('user.')], [])


@case('xattr: on an open file without a name', {'f': 'x'})
def _():
    _needs_xattrs()
    fd = os.open('f', os.O_RDWR)
    os.unlink('f')
    os.setxattr(fd, 'user.a', b'1')
    equal(os.getxattr(fd, 'user.a'), b'1')
    os.close(fd)


@case('a capability goes when the file is written', {'f': 'x'})
def _():
    capability = bytes.fromhex('0100000200040000000000000000000000000000')
    try:
        os.setxattr('f', 'security.capability', capability)
    except OSError as error:
        raise Skip('no file capabilities here') from error
    equal(os.getxattr('f', 'security.capability'), capability)
    write('f', 'changed', 'a')
    raises(errno.ENODATA, os.getxattr, 'f', 'security.capability')


@case('metadata alone leaves the content as it was', {'f': 'content', 'd/g': 'deep'})
def _():
    os.chmod('f', 0o600)
    os.chown('d/g', 9, 9)
    os.utime('d', ns=(OLD, OLD))
    equal((read('f'), read('d/g'), names('d')), ('content', 'deep', ['g']))
