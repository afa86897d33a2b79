"""Does file operations for test/model and test/crash that Node cannot: one JSON request per line, one JSON answer each.

{"do": "op", "roots": [...], "op": {...}}  the same operation below each root; a list with one result per root
{"do": "dump", "root": ..., "dirTimes": bool}  the whole tree as {path: description}
{"do": "copy", "from": ..., "to": ...}  a tree with everything that belongs to it

A result is what the operation gives, or "E<NAME>" of the errno. Paths and data are latin-1 strings: one character, one byte.
"""

import ctypes
import errno
import json
import mmap
import os
import stat
import subprocess
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
PUNCH_HOLE, KEEP_SIZE, ZERO_RANGE = 2, 1, 16
handles = {}  # (root, handle) -> descriptor
# Times that operations set lie before this; everything later is "now" and differs between the roots.
LONG_AGO = 1_500_000_000


def raw(text):
    return text.encode("latin-1")


def check(result):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def renameat2(old, new, flags):
    check(libc.renameat2(-100, old, -100, new, flags))


def fallocate(fd, mode, offset, length):
    check(libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)))


def opened(path, flags, mode=0o644):
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, mode)


def with_file(path, flags, act, mode=0o644):
    fd = opened(path, flags, mode)
    try:
        return act(fd)
    finally:
        os.close(fd)


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


def write_mapped(fd, offset, data):
    size = os.fstat(fd).st_size
    if size == 0 or offset >= size:
        return "outside"
    with mmap.mmap(fd, size) as view:
        data = data[: size - offset]
        view[offset : offset + len(data)] = data
        view.flush()
    return len(data)


def named_tmpfile(folder, path, data):
    fd = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o640)
    try:
        write_all(fd, data)
        os.link(f"/proc/self/fd/{fd}", path, follow_symlinks=True)
    finally:
        os.close(fd)


def copy_range(source, target, source_offset, target_offset, length):
    return with_file(
        source,
        os.O_RDONLY,
        lambda a: with_file(
            target, os.O_WRONLY, lambda b: os.copy_file_range(a, b, length, source_offset, target_offset)
        ),
    )


def look(path):
    st = os.lstat(path)
    size = 0 if stat.S_ISDIR(st.st_mode) else st.st_size
    return [oct(st.st_mode), st.st_uid, st.st_gid, size, st.st_nlink, st.st_rdev if stat.S_ISCHR(st.st_mode) else 0]


def perform(root, op):
    def at(name):
        return os.path.join(raw(root), raw(op[name]))

    data = raw(op.get("data", ""))
    kind = op["kind"]
    if kind == "create":
        return with_file(at("path"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, lambda fd: write_all(fd, data), op["mode"])
    if kind == "replace":
        return with_file(at("path"), os.O_CREAT | os.O_TRUNC | os.O_WRONLY, lambda fd: write_all(fd, data))
    if kind == "write":
        return with_file(at("path"), os.O_WRONLY, lambda fd: os.pwrite(fd, data, op["offset"]))
    if kind == "append":
        return with_file(at("path"), os.O_WRONLY | os.O_APPEND, lambda fd: os.write(fd, data))
    if kind == "truncate":
        return os.truncate(at("path"), op["size"]) if not os.path.islink(at("path")) else "link"
    if kind == "read":
        return with_file(at("path"), os.O_RDONLY, lambda fd: os.read(fd, 1 << 20).decode("latin-1"))
    if kind == "rename":
        return renameat2(at("path"), at("to"), op["flags"])
    if kind == "link":
        return os.link(at("path"), at("to"), follow_symlinks=False)
    if kind == "unlink":
        return os.unlink(at("path"))
    if kind == "mkdir":
        return os.mkdir(at("path"), op["mode"])
    if kind == "rmdir":
        return os.rmdir(at("path"))
    if kind == "symlink":
        return os.symlink(raw(op["target"]), at("path"))
    if kind == "readlink":
        return os.readlink(at("path")).decode("latin-1")
    if kind == "chmod":
        return os.chmod(at("path"), op["mode"]) if not os.path.islink(at("path")) else "link"
    if kind == "chown":
        return os.chown(at("path"), op["uid"], op["gid"], follow_symlinks=False)
    if kind == "utime":
        return os.utime(at("path"), ns=(op["time"] * 10**9 + 7, op["time"] * 10**9 + 9), follow_symlinks=False)
    if kind == "setxattr":
        return os.setxattr(at("path"), raw(op["name"]), data, op["flags"], follow_symlinks=False)
    if kind == "removexattr":
        return os.removexattr(at("path"), raw(op["name"]), follow_symlinks=False)
    if kind == "mknod":
        return os.mknod(at("path"), op["mode"], op["rdev"])
    if kind == "fallocate":
        return with_file(at("path"), os.O_RDWR, lambda fd: fallocate(fd, op["mode"], op["offset"], op["length"]))
    if kind == "map":
        return with_file(at("path"), os.O_RDWR, lambda fd: write_mapped(fd, op["offset"], data))
    if kind == "tmpfile":
        return named_tmpfile(os.path.dirname(at("path")), at("path"), data)
    if kind == "copyRange":
        return copy_range(at("path"), at("to"), op["offset"], op["size"], op["length"])
    if kind == "stat":
        return look(at("path"))
    if kind == "list":
        return sorted(name.decode("latin-1") for name in os.listdir(at("path")))
    if kind == "hold":
        key = (root, op["handle"])
        if key in handles:
            os.close(handles.pop(key))
        handles[key] = opened(at("path"), op["flags"])
        return None
    fd = handles.get((root, op["handle"]))
    if fd is None:
        return "no handle"
    if kind == "heldWrite":
        return os.pwrite(fd, data, op["offset"])
    if kind == "heldRead":
        return os.pread(fd, op["length"], op["offset"]).decode("latin-1")
    if kind == "heldTruncate":
        return os.ftruncate(fd, op["size"])
    if kind == "heldClose":
        os.close(handles.pop((root, op["handle"])))
        return None
    raise ValueError(kind)


def attempt(root, op):
    try:
        return perform(root, op)
    except OSError as error:
        return "E" + errno.errorcode.get(error.errno, str(error.errno))


def when(st):
    return f" {st.st_mtime_ns}" if st.st_mtime < LONG_AGO else " now"


def describe(path, st, dir_times):
    text = f"{oct(st.st_mode)} {st.st_uid}:{st.st_gid}"
    if stat.S_ISREG(st.st_mode):
        fd = opened(path, os.O_RDONLY)
        try:
            data = b""
            while piece := os.read(fd, 1 << 20):
                data += piece
        finally:
            os.close(fd)
        text += f" {st.st_size} {data.decode('latin-1')!r}"
    if stat.S_ISLNK(st.st_mode):
        text += " -> " + os.readlink(path).decode("latin-1")
    if stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
        text += f" {st.st_rdev}"
    if dir_times or not stat.S_ISDIR(st.st_mode):
        text += when(st)
    for name in sorted(os.listxattr(path, follow_symlinks=False)):
        text += f" {name}={os.getxattr(path, name, follow_symlinks=False).decode('latin-1')!r}"
    return text


def dump(root, dir_times):
    tree, files = {}, {}

    def walk(path, below):
        st = os.lstat(path)
        tree[below] = describe(path, st, dir_times)
        if not stat.S_ISDIR(st.st_mode):
            if st.st_nlink > 1:
                files.setdefault((st.st_dev, st.st_ino), []).append(below)
            return
        for name in sorted(os.listdir(path)):
            walk(os.path.join(path, name), below + ("/" if below else "") + name.decode("latin-1"))

    walk(raw(root), "")
    for paths in files.values():
        if len(paths) > 1:
            for path in paths:
                tree[path] += " same file as " + min(paths)
    return tree


def answer(request):
    do = request["do"]
    if do == "op":
        return [attempt(root, request["op"]) for root in request["roots"]]
    if do == "dump":
        return dump(request["root"], request["dirTimes"])
    if do == "copy":
        subprocess.run(["cp", "-a", request["from"] + "/.", request["to"]], check=True)
        return None
    if do == "forget":  # every handle below a root whose mount is going away
        for key in [key for key in handles if key[0] == request["root"]]:
            try:
                os.close(handles.pop(key))
            except OSError:
                pass
        return None
    if do == "now":
        return time.time()
    raise ValueError(do)


def main():
    os.umask(0o022)
    for line in sys.stdin:
        try:
            reply = {"result": answer(json.loads(line))}
        except Exception as error:  # tells the suite, which fails with it
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


main()
