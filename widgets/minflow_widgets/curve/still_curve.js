// A finished curve in a saved output: the canvas of the live one, whose data come with it instead of from a kernel.
// element: holds the picture, which is hidden if all goes well.  code, data, before: the scripts of the canvas and two of
// its traits, deflated, in base64.  look: its third trait.
(element, { code, data, before, look }) => {
  const unpacked = (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")));
  };
  const start = (code, data, before) => {
    const picture = element.firstElementChild, script = document.createElement("script");
    script.textContent = `(() => {\n${code}\ndocument.currentScript.parentElement.render = render;\n})()`;
    element.append(script); // a script of the page, like this one, where evaluated text may be forbidden
    script.remove();
    const traits = { data: new DataView(data), before: new DataView(before), look, wish: "" };
    const set = (name, value) => { traits[name] = value; };
    try {
      element.render({ model: { get: (name) => traits[name], set, save_changes() {}, on() {}, off() {} }, el: element });
      picture.style.display = "none";
    } catch (error) {
      element.replaceChildren(picture);
      throw error;
    }
  };
  return Promise.all([unpacked(code).text(), unpacked(data).arrayBuffer(), unpacked(before).arrayBuffer()])
    .then((parts) => start(...parts)).catch(console.error);
}
