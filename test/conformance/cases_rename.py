"""Renames of files and folders, with and without flags (rename(2))."""

import errno
import os

from runner import DIR, Link, NOBODY, case, equal, names, raises, read, write
from syscalls import RENAME_EXCHANGE, RENAME_NOREPLACE, renameat2


@case('a file', {'a': 'x'})
def _():
    before = os.stat('a').st_ino
    os.rename('a', 'b')
    equal(names(), ['b'])
    equal(read('b'), 'x')
    equal(os.stat('b').st_ino, before)
    raises(errno.ENOENT, os.stat, 'a')


@case('a file over a file', {'a': 'new', 'b': 'old'})
def _():
    os.rename('a', 'b')
    equal(names(), ['b'])
    equal(read('b'), 'new')


@case('a file over a file that is open', {'a': 'new', 'b': 'old'})
def _():
    fd = os.open('b', os.O_RDWR)
    os.rename('a', 'b')
    equal(os.read(fd, 10), b'old')
    equal(os.fstat(fd).st_nlink, 0)
    os.pwrite(fd, b'OLD', 0)
    equal(os.pread(fd, 10, 0), b'OLD')
    os.close(fd)
    equal(read('b'), 'new')


@case('an open file follows its new name', {'a': 'x'})
def _():
    fd = os.open('a', os.O_RDWR | os.O_APPEND)
    os.rename('a', 'b')
    os.write(fd, b'y')
    os.close(fd)
    equal(read('b'), 'xy')


@case('to another folder and back', {'d/a': 'x', 'e': DIR})
def _():
    os.rename('d/a', 'e/b')
    equal((names('d'), names('e')), ([], ['b']))
    os.rename('e/b', 'd/a')
    equal((names('d'), names('e')), (['a'], []))
    equal(read('d/a'), 'x')


@case('a changed file', {'a': 'x'})
def _():
    write('a', 'changed')
    os.rename('a', 'b')
    equal(read('b'), 'changed')
    write('b', 'again')
    os.rename('b', 'a')
    equal(read('a'), 'again')


@case('onto itself and between two names of one file', {'a': 'x'})
def _():
    os.rename('a', 'a')
    os.link('a', 'b')
    os.rename('a', 'b')
    equal(names(), ['a', 'b'])


@case('an old name can be used again', {'a': 'old'})
def _():
    os.rename('a', 'b')
    write('a', 'new')
    equal((read('a'), read('b')), ('new', 'old'))
    os.unlink('a')
    equal(names(), ['b'])


@case('a folder with everything in it', {'d/f': '1', 'd/sub/g': '2', 'd/sub/l': Link('g')})
def _():
    inode = os.stat('d/sub/g').st_ino
    os.rename('d', 'e')
    equal(names(), ['e'])
    equal(names('e/sub'), ['g', 'l'])
    equal((read('e/f'), read('e/sub/l')), ('1', '2'))
    equal(os.stat('e/sub/g').st_ino, inode)
    raises(errno.ENOENT, os.stat, 'd')
    raises(errno.ENOENT, os.stat, 'd/f')


@case('a folder, then changes below it', {'d/f': '1', 'd/sub/g': '2'})
def _():
    os.rename('d', 'e')
    write('e/sub/g', 'changed')
    write('e/sub/h', 'new')
    os.unlink('e/f')
    equal(names('e'), ['sub'])
    equal(read('e/sub/g'), 'changed')
    os.rename('e/sub', 'sub')
    equal(names('e'), [])
    equal(names('sub'), ['g', 'h'])


@case('a folder with changes below it', {'d/f': '1', 'd/g': '2'})
def _():
    write('d/f', 'changed')
    os.unlink('d/g')
    write('d/h', 'new')
    os.rename('d', 'e')
    equal(names('e'), ['f', 'h'])
    equal(read('e/f'), 'changed')
    os.mkdir('d')
    equal(names('d'), [])


@case('a folder and back', {'d/f': '1'})
def _():
    os.rename('d', 'e')
    os.rename('e', 'd')
    equal(names(), ['d'])
    equal(read('d/f'), '1')


@case('folders swap names by a third', {'a/f': 'in a', 'b/f': 'in b'})
def _():
    os.rename('a', 't')
    os.rename('b', 'a')
    os.rename('t', 'b')
    equal((read('a/f'), read('b/f')), ('in b', 'in a'))


@case('a folder into a renamed folder', {'a/f': '1', 'b/g': '2'})
def _():
    os.rename('a', 'c')
    os.rename('b', 'c/b')
    os.rename('c', 'd')
    equal(read('d/b/g'), '2')
    equal(read('d/f'), '1')
    equal(names(), ['d'])


@case('a folder over an empty folder', {'d/f': 'x', 'e': DIR})
def _():
    os.rename('d', 'e')
    equal(names(), ['e'])
    equal(read('e/f'), 'x')


@case('a folder over a folder that was emptied', {'d/f': 'x', 'e/g': 'y'})
def _():
    os.unlink('e/g')
    os.rename('d', 'e')
    equal(names('e'), ['f'])


@case('a folder over a full folder', {'d/f': 'x', 'e/g': 'y'})
def _():
    raises(errno.ENOTEMPTY, os.rename, 'd', 'e')
    equal((names('d'), names('e')), (['f'], ['g']))


@case('a folder over a file and a file over a folder', {'d': DIR, 'f': ''})
def _():
    raises(errno.ENOTDIR, os.rename, 'd', 'f')
    raises(errno.EISDIR, os.rename, 'f', 'd')


@case('a folder into itself', {'d/sub': DIR})
def _():
    raises(errno.EINVAL, os.rename, 'd', 'd/sub/d')
    raises(errno.EINVAL, os.rename, 'd', 'd/x')
    raises(errno.ENOTEMPTY, os.rename, 'd/sub', 'd')


@case('what is not there', {'d': DIR})
def _():
    raises(errno.ENOENT, os.rename, 'x', 'y')
    raises(errno.ENOENT, os.rename, 'd', 'nodir/d')


@case('a symlink, not its target', {'f': 'x', 'l': Link('f')})
def _():
    os.rename('l', 'm')
    equal(os.readlink('m'), 'f')
    os.rename('f', 'm')
    equal(names(), ['m'])
    equal(read('m'), 'x')


@case('a fifo', lambda: os.mkfifo('p'))
def _():
    os.rename('p', 'q')
    equal(names(), ['q'])


@case('NOREPLACE', {'a': 'a', 'b': 'b'})
def _():
    raises(errno.EEXIST, renameat2, 'a', 'b', RENAME_NOREPLACE)
    renameat2('a', 'c', RENAME_NOREPLACE)
    equal(names(), ['b', 'c'])
    os.unlink('b')
    renameat2('c', 'b', RENAME_NOREPLACE)
    equal(read('b'), 'a')


@case('EXCHANGE of files', {'a': 'a', 'b': 'b'})
def _():
    inodes = os.stat('a').st_ino, os.stat('b').st_ino
    renameat2('a', 'b', RENAME_EXCHANGE)
    equal((read('a'), read('b')), ('b', 'a'))
    equal((os.stat('b').st_ino, os.stat('a').st_ino), inodes)
    raises(errno.ENOENT, renameat2, 'a', 'c', RENAME_EXCHANGE)


@case('EXCHANGE of a file and a folder', {'f': 'file', 'd/in': 'inside', 'e/g': 'g'})
def _():
    renameat2('f', 'd', RENAME_EXCHANGE)
    equal(read('d'), 'file')
    equal(read('f/in'), 'inside')
    renameat2('e', 'f', RENAME_EXCHANGE)
    equal((names('e'), names('f')), (['in'], ['g']))


@case('EXCHANGE across folders keeps link counts', {'a/x/deep': '', 'b/f': ''})
def _():
    renameat2('a/x', 'b/f', RENAME_EXCHANGE)
    equal((os.stat('a').st_nlink, os.stat('b').st_nlink), (2, 3))
    equal(names('b/f'), ['deep'])


@case('EXCHANGE with an ancestor', {'d/sub': DIR})
def _():
    raises(errno.EINVAL, renameat2, 'd', 'd/sub', RENAME_EXCHANGE)
    raises(errno.EINVAL, renameat2, 'd/sub', 'd', RENAME_EXCHANGE)


@case('unknown flags', {'a': ''})
def _():
    raises(errno.EINVAL, renameat2, 'a', 'b', RENAME_NOREPLACE | RENAME_EXCHANGE)
    raises(errno.EINVAL, renameat2, 'a', 'b', 1 << 20)


@case('times: the folders and the file change their ctime', {'d/f': '', 'e': DIR})
def _():
    old = 1_000_000_000_000_000_000
    os.utime('d', ns=(old, old))
    os.utime('e', ns=(old, old))
    os.utime('d/f', ns=(old, old))
    os.rename('d/f', 'e/f')
    equal(os.stat('d').st_mtime_ns > old, True)
    equal(os.stat('e').st_mtime_ns > old, True)
    equal(os.stat('e/f').st_mtime_ns, old)


@case('by a user within a folder of root', {'d': DIR}, uid=0)
def _():
    write('f', 'x')
    pid = os.fork()
    if pid == 0:
        os.setresuid(NOBODY, NOBODY, NOBODY)
        try:
            raises(errno.EACCES, os.rename, 'f', 'g')
            raises(errno.EACCES, os.rename, 'f', 'd/f')
            os._exit(0)
        except BaseException:
            os._exit(1)
    equal(os.waitpid(pid, 0)[1], 0)


@case('a whole tree of 300 files moves as one', lambda: [(os.makedirs('t/%d' % (i % 10), exist_ok=True), write('t/%d/%d' % (i % 10, i), str(i))) for i in range(300)])
def _():
    os.rename('t', 'u')
    equal(sum(len(files) for _, _, files in os.walk('u')), 300)
    equal(read('u/7/297'), '297')
    os.rename('u/7', 'seven')
    equal(len(names('seven')), 30)
    equal(len(names('u')), 9)
