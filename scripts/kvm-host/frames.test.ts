import { describe, expect, it } from 'vitest';
import { encodeFrame, encodeStart, FrameReader, FrameType } from './frames.mjs';

describe('frames', () => {
  it('are put together again however the stream cuts them', () => {
    const sent = [
      encodeFrame(1, FrameType.output, Buffer.from('out')),
      encodeFrame(4_000_000_000, FrameType.inputEnd),
      encodeFrame(2, FrameType.end, Buffer.from([7, 0])),
    ];
    const stream = Buffer.concat(sent);
    for (let size = 1; size <= stream.length; size++) {
      const reader = new FrameReader();
      const frames = [];
      for (let at = 0; at < stream.length; at += size) frames.push(...reader.push(stream.subarray(at, at + size)));
      expect(frames.map(({ id, type, data }) => [id, type, data.toString('latin1')])).toEqual([
        [1, FrameType.output, 'out'],
        [4_000_000_000, FrameType.inputEnd, ''],
        [2, FrameType.end, '\x07\0'],
      ]);
    }
  });

  it('tell a command with words of any kind', () => {
    const start = encodeStart({ cwd: '/a b', env: { A: '1=2', B: '' }, command: ['sh', '-c', 'echo "ä"', ''] });
    expect(start.toString().split('\0')).toEqual(['/a b', '2', 'A=1=2', 'B=', 'sh', '-c', 'echo "ä"', '', '']);
  });
});
