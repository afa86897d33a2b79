"""Runs the cases of this folder against one folder: `prepare` builds every case's files, `run` runs the cases there.

The two are apart so that a case's files can come from the base, from a parent branch or from the branch itself. Each
case runs in a process of its own (with another uid where it asks for one) and is killed when it hangs. Used by main.ts;
prints one JSON object per case.
"""

import errno
import importlib
import json
import os
import signal
import sys
import traceback

HANG_SECONDS = 240  # a busy machine with a slow disk is no hang
NOBODY = 65534

_cases = []


class Skip(Exception):
    """This machine or file system cannot show what the case is about."""


class Case:
    def __init__(self, module, name, files, uid, body):
        self.module, self.name, self.files, self.uid, self.body = module, name, files, uid, body
        self.folder = 'case-%03d' % len(_cases)


def case(name, files=None, uid=0):
    """Registers a case. `files`: path -> text, DIR, Link(target), or a function called in the case's folder."""

    def register(body):
        module = body.__module__.removeprefix('cases_')
        _cases.append(Case(module, name, files or {}, uid, body))
        return body

    return register


DIR = object()


class Link:
    def __init__(self, target):
        self.target = target


def raises(number, function, *args, **kwargs):
    """The call must fail with this errno."""
    try:
        function(*args, **kwargs)
    except OSError as error:
        got = errno.errorcode.get(error.errno, str(error.errno))
        assert error.errno == number, 'expected %s, got %s' % (errno.errorcode[number], got)
        return
    raise AssertionError('expected %s, but the call succeeded' % errno.errorcode[number])


def equal(got, expected):
    assert got == expected, 'got %r, expected %r' % (got, expected)


def read(path):
    with open(path, 'rb') as file:
        return file.read().decode('utf-8', 'surrogateescape')


def write(path, text, mode='w'):
    with open(path, mode + 'b') as file:
        file.write(text.encode('utf-8', 'surrogateescape'))


def names(path='.'):
    return sorted(os.listdir(path))


def build(files):
    if callable(files):
        files()
        return
    for path, content in files.items():
        parent = os.path.dirname(path)
        if parent:
            os.makedirs(parent, exist_ok=True)
        if content is DIR:
            os.makedirs(path, exist_ok=True)
        elif isinstance(content, Link):
            os.symlink(content.target, path)
        else:
            write(path, content)


def give(path, uid):
    for folder, folders, files in os.walk(path):
        os.chown(folder, uid, uid)
        for name in folders + files:
            os.lchown(os.path.join(folder, name), uid, uid)


def prepare(root):
    for each in _cases:
        folder = os.path.join(root, each.folder)
        os.mkdir(folder)
        os.chmod(folder, 0o755)
        os.chdir(folder)
        build(each.files)
        if each.uid and os.getuid() == 0:
            give(folder, each.uid)
    os.chdir('/')


def become(uid):
    if uid and os.getuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def run_one(root, each):
    """In a child: what went wrong, as text; '' if nothing did."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.setsid()
        report = ['ok', '']
        try:
            os.umask(0o022)
            os.chdir(os.path.join(root, each.folder))
            become(each.uid)
            signal.alarm(0)
            each.body()
        except Skip as skip:
            report = ['skip', str(skip)]
        except BaseException:
            report = ['fail', traceback.format_exc(limit=6)]
        os.write(writer, json.dumps(report).encode()[:60000])
        os._exit(0)
    os.close(writer)
    signal.alarm(HANG_SECONDS)
    text = b''
    try:
        while part := os.read(reader, 65536):
            text += part
    except TimeoutError:
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(pid, signal.SIGKILL)
        return ['fail', 'hung for %d s' % HANG_SECONDS]
    finally:
        signal.alarm(0)
        os.close(reader)
    os.waitpid(pid, 0)
    return json.loads(text) if text else ['fail', 'the case died']


def on_alarm(_number, _frame):
    raise TimeoutError


def load():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    # The cases import this module by name: they must meet this very instance.
    sys.modules['runner'] = sys.modules[__name__]
    for file in sorted(os.listdir(here)):
        if file.startswith('cases_') and file.endswith('.py'):
            importlib.import_module(file.removesuffix('.py'))


def main():
    action, root = sys.argv[1], sys.argv[2]
    only = sys.argv[3] if len(sys.argv) > 3 else ''
    os.umask(0o022)
    load()
    if action == 'prepare':
        prepare(root)
        return
    signal.signal(signal.SIGALRM, on_alarm)
    for each in _cases:
        name = '%s: %s' % (each.module, each.name)
        if only and only not in name:
            continue
        if each.uid and os.getuid() not in (0, each.uid):
            status, why = 'skip', 'needs root to become another user'
        else:
            status, why = run_one(root, each)
        print(json.dumps({'name': name, 'status': status, 'why': why}), flush=True)


if __name__ == '__main__':
    main()
