// A live view that draws itself over its still picture, so that the output, and with it a saved notebook, holds the
// picture alone: a widget as the output is found gone when the file is opened again without its kernel. Put before a
// script that ends in `placed`. Python shows <minflow-live data-name="the model's id">still picture</minflow-live>.
// The page makes the model whether it is shown or not (also when loaded again while the kernel lives), and each place
// of its name, now or later, is drawn in. A model that was saved with its notebook, as `jupyter execute` does, has no
// kernel that would answer: its picture stays.
const PLACES = (globalThis.minflowPlaces ??= new Map());   // name -> function of a place
if (!customElements.get('minflow-live')) {
  customElements.define('minflow-live', class extends HTMLElement {
    connectedCallback() { globalThis.minflowPlaces.get(this.dataset.name)?.(this); }
  });
}
const placed = (view) => ({
  ...view,
  initialize({ model }) {
    const name = model.get('name'), drawn = new Map();     // place -> [its still picture, what ends the live one]
    let gone = false;
    const shut = (place) => {
      const [still, end] = drawn.get(place);
      drawn.delete(place);
      end();
      place.replaceChildren(...still);
    };
    const draw = (place) => {
      if (drawn.has(place)) return;                        // scrolled out and in again
      for (const other of [...drawn.keys()]) if (!other.isConnected) shut(other);
      const still = [...place.childNodes];
      place.replaceChildren();
      drawn.set(place, [still, view.render({ model, el: place })]);
    };
    model.widget_manager.get_model(name).then((whole) => {
      const all = () => {                                  // as often as the kernel comes or goes, as in a restart
        if (gone) return;
        if (!whole.comm_live) { leave(); return; }
        PLACES.set(name, draw);
        for (const place of document.querySelectorAll('minflow-live')) if (place.dataset.name === name) draw(place);
      };
      whole.on('comm_live_update', all);
      all();
    });
    const leave = () => {                                  // nobody answers any more: the still pictures come back
      if (PLACES.get(name) === draw) PLACES.delete(name);
      for (const place of [...drawn.keys()]) shut(place);
    };
    return () => { gone = true; leave(); };
  },
});
