"""Hard links, symlinks, fifos, sockets and devices (link, symlink, mknod)."""

import errno
import os
import socket
import stat

from runner import DIR, Link, NOBODY, Skip, case, equal, names, raises, read, write


def _linked():
    write('a', 'shared')
    os.link('a', 'b')
    os.mkdir('d')
    os.link('a', 'd/c')


@case('a hard link', {'a': 'x'})
def _():
    os.link('a', 'b')
    equal(os.stat('a').st_ino, os.stat('b').st_ino)
    equal(os.stat('a').st_nlink, 2)
    write('b', 'changed')
    equal(read('a'), 'changed')
    os.unlink('a')
    equal(os.stat('b').st_nlink, 1)
    equal(read('b'), 'changed')


@case('existing hard links stay one file when it is changed', _linked)
def _():
    equal(os.stat('a').st_nlink, 3)
    write('a', 'changed')
    equal((read('b'), read('d/c')), ('changed', 'changed'))
    equal(os.stat('b').st_ino, os.stat('a').st_ino)
    equal(os.stat('d/c').st_nlink, 3)
    os.chmod('d/c', 0o600)
    equal(stat.S_IMODE(os.stat('a').st_mode), 0o600)


@case('existing hard links: one name goes', _linked)
def _():
    os.unlink('a')
    equal(os.stat('b').st_nlink, 2)
    write('b', 'changed')
    equal(read('d/c'), 'changed')
    os.unlink('d/c')
    equal(os.stat('b').st_nlink, 1)


@case('existing hard links: a name is replaced', _linked)
def _():
    write('t', 'new')
    os.rename('t', 'a')
    equal((read('a'), read('b'), read('d/c')), ('new', 'shared', 'shared'))
    equal(os.stat('b').st_nlink, 2)


@case('existing hard links: the second name is written first', _linked)
def _():
    write('d/c', 'by c', 'a')
    equal(read('a'), 'sharedby c')
    fd = os.open('b', os.O_RDONLY)
    write('a', '!', 'a')
    equal(os.read(fd, 100), b'sharedby c!')
    os.close(fd)


@case('a further link to an existing file', _linked)
def _():
    os.link('d/c', 'e')
    equal(os.stat('a').st_nlink, 4)
    write('e', 'changed')
    equal(read('a'), 'changed')


@case('link: what it refuses', {'f': '', 'd': DIR})
def _():
    raises(errno.EEXIST, os.link, 'f', 'f')
    raises(errno.EEXIST, os.link, 'f', 'd')
    raises(errno.EPERM, os.link, 'd', 'e')
    raises(errno.ENOENT, os.link, 'x', 'y')
    raises(errno.ENOENT, os.link, 'f', 'nodir/y')
    raises(errno.ENOTDIR, os.link, 'f', 'f/y')


@case('link and unlink many', {'f': 'x'})
def _():
    for i in range(100):
        os.link('f', 'l%d' % i)
    equal(os.stat('f').st_nlink, 101)
    for i in range(100):
        os.unlink('l%d' % i)
    equal(os.stat('f').st_nlink, 1)


@case('link of a symlink itself', {'l': Link('nowhere')})
def _():
    os.link('l', 'm', follow_symlinks=False)
    equal(os.readlink('m'), 'nowhere')
    equal(os.lstat('l').st_nlink, 2)


@case('a link to a fifo', lambda: os.mkfifo('p'))
def _():
    os.link('p', 'q')
    equal(os.stat('q').st_nlink, 2)


@case('a symlink', {'f': 'x'})
def _():
    os.symlink('f', 'l')
    equal(os.readlink('l'), 'f')
    equal(read('l'), 'x')
    equal(os.lstat('l').st_size, 1)
    equal(stat.S_IMODE(os.lstat('l').st_mode), 0o777)
    os.unlink('l')
    equal(names(), ['f'])


@case('symlinks that are there', {'f': 'x', 'd/g': 'y', 'l': Link('f'), 'ld': Link('d'), 'up': Link('../nothing/there'), 'abs': Link('/nonexistent/x')})
def _():
    equal([os.readlink(name) for name in ('l', 'ld', 'up', 'abs')], ['f', 'd', '../nothing/there', '/nonexistent/x'])
    equal(read('ld/g'), 'y')
    write('l', 'through')
    equal(read('f'), 'through')
    write('ld/new', 'n')
    equal(names('d'), ['g', 'new'])
    os.unlink('l')
    os.symlink('other', 'l')
    equal(os.readlink('l'), 'other')


@case('a symlink of 4095 bytes, not of 4096')
def _():
    target = 't' * 200 + '/' + 'x' * 3894
    os.symlink(target, 'l')
    equal(os.readlink('l'), target)
    raises(errno.ENAMETOOLONG, os.symlink, 'y' * 4096, 'm')
    raises(errno.ENOENT, os.symlink, '', 'm')


@case('a symlink with strange bytes')
def _():
    os.symlink(b'\xff\xfe/ \n', b'l')
    equal(os.readlink(b'l'), b'\xff\xfe/ \n')


@case('a loop of symlinks', {'a': Link('b'), 'b': Link('a')})
def _():
    raises(errno.ELOOP, os.stat, 'a')
    raises(errno.ELOOP, os.open, 'b', os.O_RDONLY)


@case('readlink of what is none', {'f': '', 'd': DIR})
def _():
    raises(errno.EINVAL, os.readlink, 'f')
    raises(errno.EINVAL, os.readlink, 'd')


@case('rmdir through a symlink', {'d': DIR, 'l': Link('d')})
def _():
    raises(errno.ENOTDIR, os.rmdir, 'l')


@case('an owner of a symlink', {'l': Link('nowhere')})
def _():
    os.lchown('l', 1, 2)
    status = os.lstat('l')
    equal((status.st_uid, status.st_gid), (1, 2))
    equal(os.readlink('l'), 'nowhere')


@case('times of a symlink', {'l': Link('nowhere')})
def _():
    os.utime('l', ns=(1_000_000_001, 2_000_000_002), follow_symlinks=False)
    equal(os.lstat('l').st_mtime_ns, 2_000_000_002)


@case('a fifo passes bytes')
def _():
    os.mkfifo('p', 0o600)
    equal(stat.S_ISFIFO(os.stat('p').st_mode), True)
    pid = os.fork()
    if pid == 0:
        fd = os.open('p', os.O_WRONLY)
        os.write(fd, b'through')
        os._exit(0)
    fd = os.open('p', os.O_RDONLY)
    equal(os.read(fd, 100), b'through')
    os.waitpid(pid, 0)
    os.unlink('p')


@case('an existing fifo', lambda: os.mkfifo('p', 0o640))
def _():
    equal(stat.S_IMODE(os.stat('p').st_mode), 0o640)
    os.chmod('p', 0o600)
    reader = os.open('p', os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open('p', os.O_WRONLY)
    os.write(writer, b'x')
    equal(os.read(reader, 10), b'x')
    os.rename('p', 'q')
    os.unlink('q')
    equal(names(), [])


@case('a socket')
def _():
    server = socket.socket(socket.AF_UNIX)
    server.bind('s')
    server.listen(1)
    equal(stat.S_ISSOCK(os.stat('s').st_mode), True)
    client = socket.socket(socket.AF_UNIX)
    client.connect('s')
    server.accept()[0].send(b'hello')
    equal(client.recv(10), b'hello')
    os.unlink('s')
    fresh = socket.socket(socket.AF_UNIX)
    raises(errno.ENOENT, fresh.connect, 's')


@case('a device node: numbers and mode')
def _():
    try:
        os.mknod('null', stat.S_IFCHR | 0o620, os.makedev(1, 3))
        os.mknod('disk', stat.S_IFBLK | 0o600, os.makedev(259, 1000))
    except PermissionError as error:
        raise Skip('this machine lets nobody make devices') from error
    status = os.stat('null')
    equal((stat.S_ISCHR(status.st_mode), status.st_rdev, stat.S_IMODE(status.st_mode)), (True, os.makedev(1, 3), 0o620 & ~0o022))
    equal(os.stat('disk').st_rdev, os.makedev(259, 1000))
    os.rename('null', 'zero')
    os.unlink('zero')
    os.unlink('disk')


@case('mknod of a regular file')
def _():
    os.mknod('f', stat.S_IFREG | 0o600)
    equal(read('f'), '')
    equal(stat.S_IMODE(os.stat('f').st_mode), 0o600)
    raises(errno.EEXIST, os.mknod, 'f', stat.S_IFREG | 0o600)


@case('a user makes no devices', uid=NOBODY)
def _():
    raises(errno.EPERM, os.mknod, 'null', stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mkfifo('p')


@case('a file is executed')
def _():
    write('run', '#!/bin/sh\necho "$1"\n')
    os.chmod('run', 0o755)
    equal(os.popen('./run works').read(), 'works\n')
    os.chmod('run', 0o644)
    raises(errno.EACCES, os.execv, './run', ['./run'])


@case('a program that is there is executed', lambda: (write('run', '#!/bin/sh\necho "old $1"\n'), os.chmod('run', 0o755)))
def _():
    equal(os.popen('./run works').read(), 'old works\n')
    write('run', '#!/bin/sh\necho "new $1"\n')
    equal(os.popen('./run works').read(), 'new works\n')


@case('a binary is copied and executed')
def _():
    with open('/bin/true', 'rb') as source, open('true', 'wb') as target:
        target.write(source.read())
    os.chmod('true', 0o755)
    pid = os.fork()
    if pid == 0:
        os.execv('./true', ['true'])
    equal(os.waitpid(pid, 0)[1], 0)
