"""What a user without privileges may do (path_resolution(7), inode(7)): each case runs as uid 65534."""

import errno
import os
import stat

from runner import DIR, NOBODY, case, equal, names, raises, read, write


def _roots():
    """Files of root beside files of the user (the runner gives everything to the user; these take it back)."""
    write('own', 'mine')
    write('other', 'theirs')
    os.mkdir('folder')
    write('folder/f', 'x')


def as_root_first(change):
    """The case's folder as the user has it, after root has changed it, then the case itself as the user."""

    def wrap(body):
        def both():
            change()
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            body()

        both.__module__ = body.__module__
        return both

    return wrap


def user_case(name, files, change):
    def register(body):
        return case(name, files)(as_root_first(change)(body))

    return register


@case('own files', {'f': 'x', 'd/g': 'y'}, uid=NOBODY)
def _():
    write('f', 'changed')
    os.chmod('f', 0o600)
    os.rename('f', 'd/f')
    os.unlink('d/g')
    equal(names('d'), ['f'])
    raises(errno.EPERM, os.chown, 'd/f', 0, -1)
    raises(errno.EPERM, os.chown, 'd/f', -1, 0)
    os.chown('d/f', NOBODY, NOBODY)


@user_case('a file of root, mode 0600', {'f': 'secret'}, lambda: os.chmod('f', 0o600))
def _():
    raises(errno.EACCES, os.open, 'f', os.O_RDONLY)
    raises(errno.EACCES, os.open, 'f', os.O_WRONLY)
    raises(errno.EACCES, os.truncate, 'f', 0)
    raises(errno.EPERM, os.chmod, 'f', 0o666)
    raises(errno.EPERM, os.utime, 'f', (1, 1))
    raises(errno.EACCES, os.utime, 'f')
    equal(os.stat('f').st_size, 6)
    equal(os.access('f', os.R_OK), False)


@user_case('a file of root, mode 0644', {'f': 'text'}, lambda: os.chmod('f', 0o644))
def _():
    equal(read('f'), 'text')
    raises(errno.EACCES, os.open, 'f', os.O_RDWR)
    raises(errno.EACCES, os.unlink, 'f')
    raises(errno.EACCES, os.rename, 'f', 'g')
    raises(errno.EACCES, os.mkdir, 'd')
    raises(errno.EACCES, os.open, 'new', os.O_CREAT | os.O_WRONLY)


@user_case('a file of root, mode 0666, in a folder of root', {'f': 'text'}, lambda: os.chmod('f', 0o666))
def _():
    write('f', 'changed')
    equal(read('f'), 'changed')
    raises(errno.EACCES, os.unlink, 'f')
    equal(os.stat('f').st_uid, 0)


@user_case('a folder of root, mode 0700', {'d/f': 'x'}, lambda: os.chmod('d', 0o700))
def _():
    raises(errno.EACCES, os.listdir, 'd')
    raises(errno.EACCES, os.stat, 'd/f')
    raises(errno.EACCES, os.open, 'd/new', os.O_CREAT | os.O_WRONLY)
    raises(errno.EACCES, os.chdir, 'd')


@user_case('a folder of root, mode 0711', {'d/f': 'x'}, lambda: os.chmod('d', 0o711))
def _():
    raises(errno.EACCES, os.listdir, 'd')
    equal(read('d/f'), 'x')


@user_case('a folder of root, mode 0744', {'d/f': 'x'}, lambda: os.chmod('d', 0o744))
def _():
    equal(names('d'), ['f'])
    raises(errno.EACCES, os.stat, 'd/f')


@user_case('a folder of root, mode 0777: files of others may go', {'d/f': 'x'}, lambda: os.chmod('d', 0o777))
def _():
    os.rename('d/f', 'd/g')
    write('d/own', 'y')
    os.unlink('d/g')
    equal(names('d'), ['own'])
    equal(os.stat('d/own').st_uid, NOBODY)


def _sticky():
    os.chmod('d', 0o1777)
    write('d/own', 'y')
    os.chown('d/own', NOBODY, NOBODY)


@user_case('a sticky folder: files of others stay', {'d/f': 'x'}, _sticky)
def _():
    raises(errno.EPERM, os.unlink, 'd/f')
    raises(errno.EPERM, os.rename, 'd/f', 'd/g')
    write('d/new', 'n')
    raises(errno.EPERM, os.rename, 'd/new', 'd/f')
    os.rename('d/own', 'd/mine')
    os.unlink('d/mine')
    equal(names('d'), ['f', 'new'])


def _group():
    os.chown('f', 0, NOBODY)
    os.chmod('f', 0o640)
    os.chown('g', 0, NOBODY)
    os.chmod('g', 0o604)


@user_case('the group\'s bits, not the others\'', {'f': 'x', 'g': 'y'}, _group)
def _():
    equal(read('f'), 'x')
    raises(errno.EACCES, os.open, 'g', os.O_RDONLY)


@user_case('no way through a folder without x', {'d/sub/f': 'x'}, lambda: os.chmod('d', 0o600))
def _():
    raises(errno.EACCES, os.stat, 'd/sub/f')
    raises(errno.EACCES, os.stat, 'd/nothing')


@case('the own file, mode 0', {'f': 'x'}, uid=NOBODY)
def _():
    os.chmod('f', 0)
    raises(errno.EACCES, os.open, 'f', os.O_RDONLY)
    os.chmod('f', 0o400)
    equal(read('f'), 'x')
    raises(errno.EACCES, os.open, 'f', os.O_WRONLY)
    os.unlink('f')


@case('the own folder without w', {'d/f': 'x'}, uid=NOBODY)
def _():
    os.chmod('d', 0o555)
    raises(errno.EACCES, os.unlink, 'd/f')
    raises(errno.EACCES, os.mkdir, 'd/sub')
    write('d/f', 'changed')
    os.chmod('d', 0o755)
    os.unlink('d/f')


@case('chmod drops sgid where the group is not one\'s own', {'f': 'x'})
def _():
    os.chown('f', NOBODY, 50)
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        os.chmod('f', 0o2755)
        os._exit(0)
    equal(os.waitpid(pid, 0)[1], 0)
    equal(stat.S_IMODE(os.stat('f').st_mode), 0o755)


@user_case('a hard link to a file of others', {'f': 'x', 'd': DIR}, lambda: os.chmod('d', 0o777))
def _():
    with open('/proc/sys/fs/protected_hardlinks', encoding='utf-8') as file:
        if file.read().strip() == '1':
            raises(errno.EPERM, os.link, 'f', 'd/l')
        else:
            os.link('f', 'd/l')


@user_case('root is not bound, the user is', {'d/f': 'x'}, lambda: (os.chmod('d/f', 0), write('d/f', 'by root')))
def _():
    raises(errno.EACCES, os.open, 'd/f', os.O_RDONLY)
    raises(errno.EACCES, os.execv, 'd/f', ['f'])
