// The explorer's search: the field, and the list of what was found, which the kernel sends with each picture.
// Put after nodes.js. Read next: controls.js.
const QUERY = 200;        // characters of a search that the kernel takes
const PAUSE = 150;        // milliseconds without a key before the kernel is asked

// ask: sends a request to the kernel.
function searchOf(ask) {
  const field = html('input', { type: 'search', placeholder: 'module, operation', 'aria-label': 'search' });
  const label = html('label', {}, 'search'), list = html('ul', { class: 'found' });
  label.append(field);
  let view = { query: '', found: [], more: 0 };
  let listed = '';        // what the list shows
  let wanted = null;      // what Enter meant: its first hit is gone to as soon as the kernel has it
  let pause = null;
  const draw = () => {
    const now = JSON.stringify([view.query, view.found]);
    if (now === listed) return;
    listed = now;
    list.replaceChildren(...view.found.map(([id, name, path]) => {
      const item = html('li');
      item.append(button(path ? `${name}  in ${path}` : name, `show ${name}`, () => ask({ do: 'go', id, hit: 1 })));
      return item;
    }));
    if (!view.query) return;
    const more = view.more ? `and ${view.more} more` : '';
    list.append(html('li', { class: 'faint' }, view.found.length ? more : `nothing is called ${view.query}`));
  };
  const arrived = () => {
    if (wanted === null || view.query !== wanted) return;
    wanted = null;
    if (view.found.length) ask({ do: 'go', id: view.found[0][0] });
  };
  const search = {
    label, list,
    focus: () => field.focus(),
    // Is anything written or listed?
    used: () => Boolean(field.value || view.query),
    // The search is over: something else was asked for. The kernel forgets it with that request.
    forget() {
      clearTimeout(pause);
      field.value = '';
      wanted = null;
      view = { query: '', found: [], more: 0 };
      draw();
    },
    update(next) {
      view = next;
      draw();
    },
    arrived,
    // Enter means what is written, also while the list is still that of what was written before.
    enter() {
      if (!field.value) return;
      wanted = field.value.slice(0, QUERY);
      if (view.query === wanted) arrived();
      else {
        clearTimeout(pause);
        ask({ do: 'search', text: wanted });
      }
    },
    end() {
      search.forget();
      ask({ do: 'search', text: '' });
    },
  };
  field.addEventListener('input', () => {
    wanted = null;
    clearTimeout(pause);
    pause = setTimeout(() => ask({ do: 'search', text: field.value }), PAUSE);
  });
  return search;
}
