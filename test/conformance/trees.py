"""Prints what a tree is, one line per path: type, mode, owner, size, content's digest, times, link target, xattrs, inode.

Two equal outputs mean that nobody changed anything. Used by main.ts to see that the base and a parent branch stay as they
were while cases run in a branch of theirs.
"""

import hashlib
import os
import stat
import sys


def line(path, shown):
    status = os.lstat(path)
    kind = stat.S_IFMT(status.st_mode)
    detail = ''
    if kind == stat.S_IFLNK:
        detail = repr(os.readlink(path))
    elif kind == stat.S_IFREG:
        with open(path, 'rb') as file:
            detail = hashlib.sha256(file.read()).hexdigest()
    elif kind in (stat.S_IFCHR, stat.S_IFBLK):
        detail = str(status.st_rdev)
    xattrs = []
    if kind in (stat.S_IFREG, stat.S_IFDIR):
        xattrs = [(name, os.getxattr(path, name)) for name in sorted(os.listxattr(path)) if name.startswith('user.')]
    fields = [
        shown,
        oct(status.st_mode),
        '%d:%d' % (status.st_uid, status.st_gid),
        str(status.st_nlink),
        str(status.st_size) if kind != stat.S_IFDIR else '-',
        str(status.st_mtime_ns),
        str(status.st_ino),
        detail,
        repr(xattrs) if xattrs else '',
    ]
    return ' '.join(fields)


def main():
    root = os.fsencode(sys.argv[1])
    lines = []
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            lines.append(line(path, repr(path[len(root) :])))
    print('\n'.join(sorted(lines)))


main()
