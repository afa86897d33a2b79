"""Names and folders: create, remove, look up, list (POSIX open, mkdir, rmdir, unlink; readdir(3))."""

import errno
import os
import stat
import threading

from runner import DIR, Link, NOBODY, case, equal, names, raises, read, write
from syscalls import Listing

LONG = 'n' * 255


@case('a file is there with its content', {'f': 'text'})
def _():
    equal(read('f'), 'text')
    equal(names(), ['f'])


@case('a name that is not there', {'d': DIR})
def _():
    raises(errno.ENOENT, os.stat, 'x')
    raises(errno.ENOENT, os.stat, 'd/x')
    raises(errno.ENOENT, os.open, 'x', os.O_RDONLY)
    raises(errno.ENOENT, os.unlink, 'x')
    raises(errno.ENOENT, os.rmdir, 'x')
    raises(errno.ENOENT, os.open, 'nodir/x', os.O_CREAT | os.O_WRONLY)


@case('a file on the way', {'f': ''})
def _():
    raises(errno.ENOTDIR, os.stat, 'f/x')
    raises(errno.ENOTDIR, os.mkdir, 'f/x')
    raises(errno.ENOTDIR, os.listdir, 'f')
    raises(errno.ENOTDIR, os.rmdir, 'f')


@case('O_CREAT|O_EXCL on an existing file, folder, link', {'f': '', 'd': DIR, 'l': Link('nowhere')})
def _():
    for name in ('f', 'd', 'l'):
        raises(errno.EEXIST, os.open, name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)


@case('O_CREAT without O_EXCL opens what is there', {'f': 'text'})
def _():
    fd = os.open('f', os.O_CREAT | os.O_RDWR, 0o600)
    equal(os.read(fd, 10), b'text')
    os.close(fd)
    equal(stat.S_IMODE(os.stat('f').st_mode), 0o644)


@case('O_CREAT through a dangling link makes its target', {'l': Link('target')})
def _():
    os.close(os.open('l', os.O_CREAT | os.O_WRONLY, 0o644))
    equal(names(), ['l', 'target'])


@case('O_TRUNC empties', {'f': 'text'})
def _():
    os.close(os.open('f', os.O_WRONLY | os.O_TRUNC))
    equal(os.stat('f').st_size, 0)
    equal(read('f'), '')


@case('O_DIRECTORY and O_NOFOLLOW', {'f': '', 'd': DIR, 'l': Link('f'), 'ld': Link('d')})
def _():
    raises(errno.ENOTDIR, os.open, 'f', os.O_RDONLY | os.O_DIRECTORY)
    raises(errno.ELOOP, os.open, 'l', os.O_RDONLY | os.O_NOFOLLOW)
    raises(errno.ENOTDIR, os.open, 'ld', os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    os.close(os.open('ld', os.O_RDONLY | os.O_DIRECTORY))


@case('a folder cannot be opened for writing', {'d': DIR})
def _():
    raises(errno.EISDIR, os.open, 'd', os.O_WRONLY)
    raises(errno.EISDIR, os.open, 'd', os.O_RDWR)
    raises(errno.EISDIR, os.open, 'd', os.O_CREAT | os.O_WRONLY)


@case('mkdir: existing names', {'f': '', 'd': DIR, 'l': Link('nowhere')})
def _():
    for name in ('f', 'd', 'l', '.'):
        raises(errno.EEXIST, os.mkdir, name)


@case('mkdir, rmdir, mkdir again')
def _():
    for _round in range(3):
        os.mkdir('d')
        write('d/f', 'x')
        raises(errno.ENOTEMPTY, os.rmdir, 'd')
        os.unlink('d/f')
        os.rmdir('d')
        raises(errno.ENOENT, os.stat, 'd')


@case('rmdir of a full folder', {'d/f': 'x', 'e/sub': DIR})
def _():
    raises(errno.ENOTEMPTY, os.rmdir, 'd')
    raises(errno.ENOTEMPTY, os.rmdir, 'e')
    equal(read('d/f'), 'x')


@case('rmdir of a folder whose files were removed', {'d/a': '1', 'd/b': '2', 'd/sub/c': '3'})
def _():
    os.unlink('d/a')
    os.unlink('d/b')
    raises(errno.ENOTEMPTY, os.rmdir, 'd')
    os.unlink('d/sub/c')
    os.rmdir('d/sub')
    os.rmdir('d')
    equal(names(), [])


@case('a removed and recreated folder is empty', {'d/a': '1', 'd/sub/c': '3'})
def _():
    os.unlink('d/a')
    os.unlink('d/sub/c')
    os.rmdir('d/sub')
    os.rmdir('d')
    os.mkdir('d')
    equal(names('d'), [])
    raises(errno.ENOENT, os.stat, 'd/a')
    os.mkdir('d/sub')
    equal(names('d/sub'), [])
    raises(errno.ENOENT, os.stat, 'd/sub/c')


@case('rmdir of "." and of a path that ends in ".."', {'d/e': DIR})
def _():
    raises(errno.EINVAL, os.rmdir, 'd/.')
    raises(errno.ENOTEMPTY, os.rmdir, 'd/e/..')


@case('unlink of a folder', {'d': DIR})
def _():
    raises(errno.EISDIR, os.unlink, 'd')


@case('unlink and recreate', {'f': 'old'})
def _():
    os.unlink('f')
    raises(errno.ENOENT, os.stat, 'f')
    raises(errno.ENOENT, os.open, 'f', os.O_RDONLY)
    write('f', 'new')
    equal(read('f'), 'new')
    equal(names(), ['f'])


@case('unlink, recreate, unlink, many times', {'f': 'old'})
def _():
    for i in range(20):
        os.unlink('f')
        equal(names(), [])
        write('f', str(i))
        equal(read('f'), str(i))
    equal(names(), ['f'])


@case('a file becomes a folder becomes a link', {'x': 'file'})
def _():
    os.unlink('x')
    os.mkdir('x')
    write('x/in', '1')
    os.unlink('x/in')
    os.rmdir('x')
    os.symlink('target', 'x')
    equal(os.readlink('x'), 'target')
    equal(stat.S_ISLNK(os.lstat('x').st_mode), True)


@case('names of 255 bytes, not of 256')
def _():
    write(LONG, 'long')
    equal(read(LONG), 'long')
    equal(names(), [LONG])
    raises(errno.ENAMETOOLONG, os.open, LONG + 'n', os.O_CREAT | os.O_WRONLY)
    raises(errno.ENAMETOOLONG, os.mkdir, LONG + 'n')
    raises(errno.ENAMETOOLONG, os.symlink, 'x', LONG + 'n')
    raises(errno.ENAMETOOLONG, os.rename, LONG, LONG + 'n')
    raises(errno.ENAMETOOLONG, os.stat, LONG + 'n')


@case('a file with a name of 255 bytes is changed and renamed', {LONG: 'old'})
def _():
    write(LONG, 'new')
    other = 'm' * 255
    os.rename(LONG, other)
    equal(names(), [other])
    equal(read(other), 'new')


@case('names of any bytes')
def _():
    strange = [b'\xff\xfe', b'new\nline', b' ', b'...', b'-rf', b'tab\t', b'\x01', b"quo'te\"", '漢字'.encode(), b'%00', b'*?']
    for name in strange:
        fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        os.write(fd, name)
        os.close(fd)
    equal(sorted(os.listdir(b'.')), sorted(strange))
    for name in strange:
        with open(name, 'rb') as file:
            equal(file.read(), name)


def _strange_base():
    for name in (b'\xff\xfe', b'new\nline', '漢字'.encode()):
        with open(name, 'wb') as file:
            file.write(name)


@case('existing names of any bytes are changed and removed', _strange_base)
def _():
    with open(b'\xff\xfe', 'ab') as file:
        file.write(b'!')
    os.unlink(b'new\nline')
    os.rename('漢字', '字漢')
    equal(sorted(os.listdir(b'.')), sorted([b'\xff\xfe', '字漢'.encode()]))
    with open(b'\xff\xfe', 'rb') as file:
        equal(file.read(), b'\xff\xfe!')


@case('upper and lower case are different names', {'File': 'upper'})
def _():
    raises(errno.ENOENT, os.stat, 'file')
    write('file', 'lower')
    equal((read('File'), read('file')), ('upper', 'lower'))


@case('no name is magic: @, .bough, .wh., .fuse_hidden', {'@types/node/index.d.ts': 'x', '.bough/config': 'y', '.wh.file': 'z'})
def _():
    equal(names(), ['.bough', '.wh.file', '@types'])
    equal(read('@types/node/index.d.ts'), 'x')
    for name in ('@branch', '@', '.boughrc', '.bough_ctl', '.wh.other', '.wh..wh..opq', '.fuse_hidden01', '.branchfs', 'proc'):
        write(name, name)
        equal(read(name), name)
        os.unlink(name)
    write('.bough/config', 'changed')
    os.unlink('.wh.file')
    equal(names(), ['.bough', '@types'])


@case('a path of many folders')
def _():
    path = '.'
    for i in range(60):
        path += '/d%d' % i
        os.mkdir(path)
    write(path + '/f', 'deep')
    equal(read(path + '/f'), 'deep')


@case('".." and "." work', {'a/b/f': 'x'})
def _():
    equal(read('a/b/../b/./f'), 'x')
    equal(os.stat('a/b/..').st_ino, os.stat('a').st_ino)
    equal(os.stat('a/.').st_ino, os.stat('a').st_ino)


@case('listing: ".", "..", types and inode numbers', {'f': '', 'd': DIR, 'l': Link('f')})
def _():
    os.mkfifo('p')
    listing = Listing('.')
    found = {}
    while entry := listing.next():
        found[entry[0]] = entry[1:]
    listing.close()
    equal(sorted(found), ['.', '..', 'd', 'f', 'l', 'p'])
    equal((found['d'][1], found['f'][1], found['l'][1], found['p'][1]), (4, 8, 10, 1))
    for name in ('f', 'd', 'l', 'p', '.'):
        equal(found[name][0], os.lstat(name).st_ino)


@case('listing 2,000 entries', lambda: [write('f%04d' % i, '') for i in range(1000)])
def _():
    for i in range(1000, 2000):
        write('f%04d' % i, '')
    equal(names(), ['f%04d' % i for i in range(2000)])
    for i in range(0, 2000, 2):
        os.unlink('f%04d' % i)
    equal(names(), ['f%04d' % i for i in range(1, 2000, 2)])


@case('listing while files are removed sees each remaining file once', lambda: [write('f%03d' % i, '') for i in range(500)])
def _():
    listing = Listing('.')
    seen = []
    while entry := listing.next():
        if entry[0] in ('.', '..'):
            continue
        seen.append(entry[0])
        os.unlink(entry[0])
    listing.close()
    equal(sorted(seen), ['f%03d' % i for i in range(500)])
    equal(names(), [])


@case('listing while files are made sees each old file once', lambda: [write('f%03d' % i, '') for i in range(300)])
def _():
    listing = Listing('.')
    seen = []
    while entry := listing.next():
        if entry[0].startswith('f'):
            seen.append(entry[0])
            if len(seen) <= 300:
                write('g%03d' % len(seen), '')
    listing.close()
    equal(sorted(seen), ['f%03d' % i for i in range(300)])
    equal(len(names()), 600)


@case('telldir and seekdir come back to the same entry', lambda: [write('f%03d' % i, '') for i in range(200)])
def _():
    listing = Listing('.')
    for _skip in range(50):
        listing.next()
    place = listing.tell()
    after = listing.rest()
    listing.seek(place)
    equal(listing.rest(), after)
    listing.close()


@case('rewinddir shows what came since', {'a': ''})
def _():
    listing = Listing('.')
    equal(sorted(listing.rest()), ['.', '..', 'a'])
    write('b', '')
    os.unlink('a')
    listing.rewind()
    equal(sorted(listing.rest()), ['.', '..', 'b'])
    listing.close()


@case('a removed folder that is still open lists nothing', {'d': DIR})
def _():
    fd = os.open('d', os.O_RDONLY)
    os.rmdir('d')
    equal(os.listdir(fd), [])
    raises(errno.ENOENT, os.open, 'x', os.O_CREAT | os.O_WRONLY, dir_fd=fd)
    os.close(fd)


@case('openat, mkdirat, unlinkat, renameat relative to a folder', {'d/f': 'x'})
def _():
    fd = os.open('d', os.O_RDONLY)
    os.mkdir('sub', dir_fd=fd)
    os.rename('f', 'sub/g', src_dir_fd=fd, dst_dir_fd=fd)
    equal(read('d/sub/g'), 'x')
    os.unlink('sub/g', dir_fd=fd)
    os.rmdir('sub', dir_fd=fd)
    equal(os.listdir(fd), [])
    os.close(fd)


@case('link counts of folders', {'d/a': DIR, 'd/f': ''})
def _():
    equal(os.stat('d').st_nlink, 3)
    os.mkdir('d/b')
    equal(os.stat('d').st_nlink, 4)
    equal(os.stat('d/b').st_nlink, 2)
    os.rmdir('d/a')
    equal(os.stat('d').st_nlink, 3)
    os.rename('d/b', 'c')
    equal(os.stat('d').st_nlink, 2)


@case('a folder with a changed child keeps its mode', {'d/sub/f': 'x'})
def _():
    os.chmod('d', 0o750)
    os.chmod('d/sub', 0o2711)
    write('d/sub/f', 'changed')
    write('d/sub/new', 'new')
    equal(stat.S_IMODE(os.stat('d').st_mode), 0o750)
    equal(stat.S_IMODE(os.stat('d/sub').st_mode), 0o2711)


def _modes():
    os.makedirs('d/sub')
    write('d/sub/f', 'x')
    os.chmod('d', 0o700)
    os.chmod('d/sub', 0o1777)
    os.chmod('d/sub/f', 0o640)


@case('modes of existing folders survive a write below', _modes)
def _():
    write('d/sub/f', 'changed')
    write('d/sub/new', '')
    equal(stat.S_IMODE(os.stat('d').st_mode), 0o700)
    equal(stat.S_IMODE(os.stat('d/sub').st_mode), 0o1777)
    equal(stat.S_IMODE(os.stat('d/sub/f').st_mode), 0o640)


@case('umask applies to files and folders')
def _():
    os.umask(0o027)
    os.close(os.open('f', os.O_CREAT | os.O_WRONLY, 0o666))
    os.mkdir('d', 0o777)
    os.mkfifo('p', 0o666)
    equal([stat.S_IMODE(os.stat(name).st_mode) for name in ('f', 'd', 'p')], [0o640, 0o750, 0o640])


@case('a read-only mode does not bind the one who created the file', uid=NOBODY)
def _():
    fd = os.open('f', os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o400)
    equal(os.write(fd, b'written'), 7)
    os.close(fd)
    raises(errno.EACCES, os.open, 'f', os.O_WRONLY)
    equal(read('f'), 'written')


@case('many threads create in one folder')
def _():
    failures = []

    def work(number):
        try:
            for i in range(50):
                write('t%d-%d' % (number, i), str(i))
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(failures, [])
    equal(len(names()), 400)
    equal(read('t7-49'), '49')


@case('of many who create one name with O_EXCL one wins')
def _():
    won = []

    def work(number):
        try:
            os.close(os.open('only', os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            won.append(number)
        except FileExistsError:
            pass

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(len(won), 1)


@case('access(2) for what is there and what is not', {'f': ''})
def _():
    equal(os.access('f', os.R_OK | os.W_OK), True)
    equal(os.access('x', os.F_OK), False)
    os.unlink('f')
    equal(os.access('f', os.F_OK), False)
