// The legend of a panel, laid out: what legend.py says, in columns. curve_svg.py, `layout`, does the same for pictures.
// Put behind page_theme.js, and before curve_panel.js, which draws it.
const GAP = 14; // between columns

// The rows of a legend, each [words with their places, index of its line or null, kind]. Rows of several cells are a table,
// whose columns are dropped from the right and whose names are cut until it is no wider than `room`; others are wrapped.
function legendOf(c, rows, room) {
  const wide = (words) => c.measureText(words).width, table = rows.filter(([cells]) => cells.length > 1);
  const columns = Array.from({ length: Math.max(0, ...table.map(([cells]) => cells.length)) }, (_, k) => Math.max(...table.map(([cells]) => wide(cells[k])), 0));
  const total = () => columns.reduce((sum, width) => sum + width + GAP, -GAP);
  while (columns.length > 2 && total() > room) columns.pop();
  columns[0] -= Math.max(0, total() - room);
  const ends = columns.map((_, k) => columns.slice(0, k + 1).reduce((sum, width) => sum + width + GAP, -GAP));
  return rows.flatMap(([cells, line, kind]) => {
    if (cells.length > 1) {
      let name = cells[0];
      while (name && wide(name) > columns[0] + 0.5) name = name.replace(/.\u2026?$/, "\u2026").replace(/^\u2026$/, "");
      return [[[[0, name, ""], ...columns.slice(1).map((_, k) => [ends[k + 1], cells[k + 1], "right"])], line, kind]];
    }
    const wrapped = cells[0].split(" ").reduce((found, word) => {
      const last = found.length ? `${found[found.length - 1]} ${word}` : "";
      if (last && wide(last) <= room) found[found.length - 1] = last;
      else found.push(word);
      return found;
    }, []);
    return wrapped.map((words, k) => [[[0, words, ""]], k ? null : line, kind]);
  });
}
