// Rows as aligned columns. Used by the commands' tables.

/** Pads every cell but a row's last; cells count as long as they have characters. */
export function columns(rows: readonly (readonly string[])[], indent = ''): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, lengthOf(cell))));
  }
  return rows
    .map((row) => {
      const cells = row.map((cell, index) => cell + ' '.repeat((widths[index] ?? 0) - lengthOf(cell)));
      return (indent + cells.join('  ')).trimEnd();
    })
    .join('\n');
}

const characters = new Intl.Segmenter();

/** Characters as people count them. */
function lengthOf(cell: string): number {
  return [...characters.segment(cell)].length;
}

/** `1 change`, `2 changes`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
