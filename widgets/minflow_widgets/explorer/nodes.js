// Nodes of SVG and HTML, of which the explorer is made. Texts go in by textContent only.
// Put after place.js and before all other scripts of the explorer. Read next: numbers.js.
const svgNode = (name, attributes, text) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  return node;
};

const html = (name, attributes = {}, text) => {
  const node = document.createElement(name);
  // Notebook 7 looks for this on the element that has the focus.
  if (name === 'input' || name === 'button') node.dataset.lmSuppressShortcuts = 'true';
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  return node;
};

// label: what it does, in words, for its tooltip and for screen readers.
const button = (text, label, act) => {
  const node = html('button', { type: 'button', 'aria-label': label, title: label }, text);
  node.addEventListener('click', act);
  return node;
};

const slider = (name, words) => {
  const label = html('label', {}, words);
  const input = html('input', { type: 'range', min: 0, 'aria-label': name });
  label.append(input);
  return { label, input, said: html('span') };
};

// Adds the text to the node so that no number is broken across lines, nor parted from its unit.
const NUMBER = /((?<![\w.])-?\d[\w.+,%-]{0,20}(?: (?:[µm]?s|[kMG]?B|%)(?!\w))?)/;
const worded = (node, text) => {
  for (const part of String(text).split(NUMBER)) {
    node.append(/^-?\d/.test(part) ? html('span', { class: 'whole' }, part) : part);
  }
  return node;
};
