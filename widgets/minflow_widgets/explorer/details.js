// What is known of the selected box: its arrays as cards, the facts, then first values and maps. The page scrolls it.
// Put after numbers.js and maps.js. Read next: search.js.

// ask: sends a request to the kernel.
function detailsOf(ask) {
  const part = html('div', { class: 'details' }), name = html('h4', { 'aria-live': 'polite' });
  const leave = button('×', 'leave for the whole step (Esc)', () => ask({ do: 'leave' }));
  leave.classList.add('leave');
  const facts = (rows) => {
    const list = html('dl');
    for (const [what, words] of rows) list.append(html('dt', {}, what), worded(html('dd'), words));
    return list;
  };
  // First values and maps, below all cards: they are long.
  const more = (array, room) => {
    const section = html('section', { class: 'more' });
    const table = drawTable(array, room);
    const turn = (page) => ask({ do: 'maps', label: array.label, to: page });
    if (table || array.maps) section.append(html('b', {}, array.label));
    if (array.maps) section.append(drawMaps(array.label, array.maps, room, turn));
    if (table) section.append(table);
    return section.children.length ? [section] : [];
  };
  return {
    part, name,
    draw(detail) {
      const held = part.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
      const cards = html('div', { class: 'cards' }), head = html('div', { class: 'head' });
      name.textContent = (detail.at >= 0 ? `Instruction ${detail.at + 1}: ` : '') + (detail.title ?? '');
      head.append(name);
      if (detail.at >= 0 || detail.row >= 0) head.append(leave);
      part.replaceChildren(head);
      if (!detail.title) return;
      cards.append(...detail.arrays.map(drawCard), facts(detail.rows));
      part.append(cards);
      const room = part.clientWidth || 290;
      part.append(...detail.arrays.flatMap((array) => more(array, room)));
      if (held !== undefined) {
        const again = [...part.querySelectorAll('[data-focus]')].filter((node) => !node.disabled);
        (again.find((node) => node.dataset.focus === held) ?? again[0])?.focus({ preventScroll: true });
      }
    },
    enlarge: () => part.querySelector('.map[tabindex="0"]')?.click(),
  };
}
