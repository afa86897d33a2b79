import { expect, it } from 'vitest';
import { fuseMountsBelow } from './mounts.js';

const mountinfo = [
  '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw',
  '40 22 0:40 / /state/stores/aa/mounts/b1 rw,nosuid,nodev shared:9 - fuse.boughfs boughfs rw,user_id=0',
  '41 22 0:41 / /state/stores/a\\040b/mounts/b\\0122 rw - fuse boughfs rw',
  '42 22 0:42 / /state/stores/aa/mounts/b3 rw - tmpfs tmpfs rw',
  '43 22 0:43 / /elsewhere/stores/mounts/b4 rw - fuse.boughfs boughfs rw',
  '44 22 0:44 / /state/stores-of-others/b5 rw master:1 propagate_from:2 - fuse.boughfs boughfs rw',
  '',
].join('\n');

it('finds FUSE mounts below a folder by name, and nobody else’s', () => {
  expect(fuseMountsBelow('/state/stores', mountinfo).sort()).toEqual(
    ['/state/stores/aa/mounts/b1', '/state/stores/a b/mounts/b\n2'].sort(),
  );
});
