"""How programs use files: editors' ways to save, sqlite, lock files, temporary names, package managers' moves."""

import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile

from runner import DIR, Link, case, equal, names, raises, read, write


@case('save: temporary file, fsync, rename', {'f': 'old'})
def _():
    for i in range(10):
        fd = os.open('.f.tmp', os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        os.write(fd, b'version %d' % i)
        os.fsync(fd)
        os.close(fd)
        os.rename('.f.tmp', 'f')
        equal(read('f'), 'version %d' % i)
    equal(names(), ['f'])


@case('save with a backup by rename (vim)', {'f': 'old'})
def _():
    for i in range(5):
        os.rename('f', 'f~')
        write('f', 'version %d' % i)
        os.unlink('f~')
    equal((read('f'), names()), ('version 4', ['f']))


@case('save with a backup by link (emacs)', {'f': 'old'})
def _():
    os.link('f', 'f~')
    write('#f#', 'new')
    os.rename('#f#', 'f')
    equal((read('f'), read('f~')), ('new', 'old'))
    equal(os.stat('f~').st_nlink, 1)


@case('save in place, with truncation (VS Code)', {'f': 'a longer old text'})
def _():
    for i in range(10):
        fd = os.open('f', os.O_WRONLY | os.O_TRUNC)
        os.write(fd, b'v%d' % i)
        os.close(fd)
        equal(read('f'), 'v%d' % i)


@case('save through a symlink', {'real/f': 'old', 'f': Link('real/f')})
def _():
    write('f', 'new')
    equal(os.readlink('f'), 'real/f')
    equal(read('real/f'), 'new')


@case('sed -i, cp -a, mv, rm -rf, ln -sf', {'d/a': 'one two', 'd/sub/b': 'x', 'd/l': Link('a')})
def _():
    def sh(command):
        done = subprocess.run(['sh', '-ec', command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    sh('sed -i s/one/three/ d/a')
    equal(read('d/a'), 'three two')
    sh('cp -a d e && diff -r d e && test -L e/l')
    sh('mv e/sub f && ln -sf b f/l && ln -sf c f/l && test "$(readlink f/l)" = c')
    sh('rm -rf d && test ! -e d')
    equal(sh('find . -type f | sort').split(), ['./e/a', './f/b'])
    sh('install -m 0750 -D e/a g/h/a && test "$(stat -c %a g/h/a)" = 750')
    sh('touch -d 2001-02-03T04:05:06Z e/a && test "$(stat -c %Y e/a)" = 981173106')


@case('rm -rf of a tree that is there', lambda: [(os.makedirs('t/%d/%d' % (i % 5, i % 7), exist_ok=True), write('t/%d/%d/%d' % (i % 5, i % 7, i), '')) for i in range(200)])
def _():
    shutil.rmtree('t')
    equal(names(), [])
    os.mkdir('t')
    equal(names('t'), [])


@case('tar there and back', {'d/a': 'x' * 1000, 'd/l': Link('a'), 'd/e': DIR})
def _():
    os.link('d/a', 'd/h')
    os.chmod('d/a', 0o751)
    with tarfile.open('t.tar', 'w') as tar:
        tar.add('d')
    shutil.rmtree('d')
    with tarfile.open('t.tar') as tar:
        tar.extractall('out')
    equal(names('out/d'), ['a', 'e', 'h', 'l'])
    equal(os.stat('out/d/h').st_nlink, 2)
    equal(os.stat('out/d/a').st_mode & 0o777, 0o751)


@case('lock files by O_EXCL and by link')
def _():
    fd = os.open('lock', os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    raises(17, os.open, 'lock', os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.close(fd)
    os.unlink('lock')
    write('mine', str(os.getpid()))
    os.link('mine', 'lock')
    raises(17, os.link, 'mine', 'lock')
    os.unlink('lock')


@case('temporary files of Python')
def _():
    with tempfile.TemporaryFile(dir='.') as file:
        file.write(b'x' * 100000)
        file.seek(0)
        equal(len(file.read()), 100000)
    with tempfile.NamedTemporaryFile(dir='.') as file:
        file.write(b'y')
        file.flush()
        equal(read(file.name), 'y')
    equal(names(), [])


@case('a package is installed by rename (npm)', {'node_modules/.staging': DIR, 'node_modules/old/index.js': '1'})
def _():
    os.makedirs('node_modules/.staging/p-1/lib')
    write('node_modules/.staging/p-1/lib/index.js', 'module.exports = 1')
    os.rename('node_modules/old', 'node_modules/.staging/old-2')
    os.rename('node_modules/.staging/p-1', 'node_modules/old')
    shutil.rmtree('node_modules/.staging')
    equal(names('node_modules'), ['old'])
    equal(names('node_modules/old/lib'), ['index.js'])


def _database():
    base = sqlite3.connect('db')
    base.execute('create table t (n integer primary key, s text)')
    base.executemany('insert into t (s) values (?)', [('row %d' % i,) for i in range(500)])
    base.commit()
    base.close()


@case('sqlite with a rollback journal', _database)
def _():
    base = sqlite3.connect('db')
    base.execute('pragma journal_mode=delete')
    base.executemany('insert into t (s) values (?)', [('more %d' % i,) for i in range(500)])
    base.commit()
    base.execute('delete from t where n % 3 = 0')
    base.rollback()
    equal(base.execute('select count(*) from t').fetchone()[0], 1000)
    equal(base.execute('pragma integrity_check').fetchone()[0], 'ok')
    base.close()
    equal(names(), ['db'])


@case('sqlite with a write-ahead log and two connections', _database)
def _():
    first = sqlite3.connect('db', timeout=30)
    equal(first.execute('pragma journal_mode=wal').fetchone()[0], 'wal')
    second = sqlite3.connect('db', timeout=30)
    for i in range(50):
        first.execute('insert into t (s) values (?)', ('wal %d' % i,))
        first.commit()
        equal(second.execute('select count(*) from t').fetchone()[0], 501 + i)
    equal('db-wal' in names() and 'db-shm' in names(), True)
    equal(second.execute('pragma integrity_check').fetchone()[0], 'ok')
    second.execute('pragma wal_checkpoint(truncate)')
    first.close()
    second.close()
    equal(names(), ['db'])


@case('sqlite: processes write side by side', _database)
def _():
    base = sqlite3.connect('db')
    base.execute('pragma journal_mode=wal')
    base.close()
    children = []
    for number in range(3):
        pid = os.fork()
        if pid == 0:
            own = sqlite3.connect('db', timeout=50)
            for i in range(20):
                own.execute('insert into t (s) values (?)', ('%d-%d' % (number, i),))
                own.commit()
            own.close()
            os._exit(0)
        children.append(pid)
    equal([os.waitpid(pid, 0)[1] for pid in children], [0, 0, 0])
    base = sqlite3.connect('db')
    equal(base.execute('select count(*) from t').fetchone()[0], 560)
    equal(base.execute('pragma integrity_check').fetchone()[0], 'ok')


@case('a log that is rotated while it is written', {'log': 'start\n'})
def _():
    fd = os.open('log', os.O_WRONLY | os.O_APPEND)
    os.write(fd, b'one\n')
    os.rename('log', 'log.1')
    os.write(fd, b'two\n')
    write('log', 'fresh\n')
    os.write(fd, b'three\n')
    os.close(fd)
    equal((read('log'), read('log.1')), ('fresh\n', 'start\none\ntwo\nthree\n'))


@case('copytree, compare, remove, many rounds', {'d/a': '1', 'd/b/c': '2'})
def _():
    for i in range(5):
        shutil.copytree('d', 'copy%d' % i, symlinks=True)
        write('copy%d/b/c' % i, str(i))
    equal([read('copy%d/b/c' % i) for i in range(5)], list('01234'))
    for i in range(5):
        shutil.rmtree('copy%d' % i)
    equal((names(), read('d/b/c')), (['d'], '2'))
