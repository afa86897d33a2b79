"""System calls that Python's os module lacks. Used by the cases."""

import ctypes
import os
import struct

libc = ctypes.CDLL(None, use_errno=True)

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_SYMLINK_FOLLOW = 0x400
RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2
RENAME_WHITEOUT = 4
FALLOC_FL_KEEP_SIZE = 1
FALLOC_FL_PUNCH_HOLE = 2
FALLOC_FL_COLLAPSE_RANGE = 8
FALLOC_FL_ZERO_RANGE = 16


def _check(result, path=None):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return result


def _bytes(path):
    return os.fsencode(path)


def renameat2(old, new, flags):
    _check(libc.renameat2(AT_FDCWD, _bytes(old), AT_FDCWD, _bytes(new), ctypes.c_uint(flags)), old)


def fallocate(fd, mode, offset, length):
    _check(libc.fallocate64(fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length)))


def link_fd(fd, path):
    """Gives an O_TMPFILE file a name."""
    source = b'/proc/self/fd/%d' % fd
    _check(libc.linkat(AT_FDCWD, source, AT_FDCWD, _bytes(path), AT_SYMLINK_FOLLOW), path)


def syncfs(fd):
    _check(libc.syncfs(fd))


def birth_time(path):
    """Nanoseconds, or None where the file system does not tell."""
    buffer = ctypes.create_string_buffer(256)
    _check(libc.statx(AT_FDCWD, _bytes(path), 0x100, 0xFFF, buffer), path)
    (mask,) = struct.unpack_from('<I', buffer, 0)
    if not mask & 0x800:
        return None
    seconds, nanoseconds = struct.unpack_from('<qI', buffer, 0x50)
    return seconds * 1_000_000_000 + nanoseconds


class Inotify:
    MODIFY, ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 2, 4, 8, 0x40, 0x80, 0x100, 0x200
    DELETE_SELF = 0x400

    def __init__(self):
        self.fd = _check(libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))

    def watch(self, path, mask):
        return _check(libc.inotify_add_watch(self.fd, _bytes(path), ctypes.c_uint32(mask)), path)

    def events(self):
        """Those that are there now: (mask, name)."""
        found = []
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return found
        at = 0
        while at < len(data):
            _, mask, _, length = struct.unpack_from('<iIII', data, at)
            name = data[at + 16 : at + 16 + length].rstrip(b'\0').decode()
            found.append((mask, name))
            at += 16 + length
        return found


class Listing:
    """opendir, readdir, telldir, seekdir of libc."""

    class _Dirent(ctypes.Structure):
        _fields_ = [
            ('ino', ctypes.c_uint64),
            ('off', ctypes.c_int64),
            ('reclen', ctypes.c_ushort),
            ('type', ctypes.c_ubyte),
            ('name', ctypes.c_char * 256),
        ]

    def __init__(self, path):
        libc.opendir.restype = ctypes.c_void_p
        libc.readdir64.restype = ctypes.POINTER(self._Dirent)
        libc.telldir.restype = ctypes.c_long
        for name in ('readdir64', 'telldir', 'rewinddir', 'closedir'):
            getattr(libc, name).argtypes = [ctypes.c_void_p]
        libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
        self.dir = libc.opendir(_bytes(path))
        if not self.dir:
            _check(-1, path)

    def next(self):
        """(name, inode, type) or None at the end."""
        entry = libc.readdir64(self.dir)
        return (os.fsdecode(entry.contents.name), entry.contents.ino, entry.contents.type) if entry else None

    def rest(self):
        found = []
        while entry := self.next():
            found.append(entry[0])
        return found

    def tell(self):
        return libc.telldir(self.dir)

    def seek(self, position):
        libc.seekdir(self.dir, position)

    def rewind(self):
        libc.rewinddir(self.dir)

    def close(self):
        libc.closedir(self.dir)
