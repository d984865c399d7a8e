// Whether the buttons of a live curve are promised, and the sentence that says why not. Times are seconds of one clock.
const LATE = "this page's clicks arrive after the cell: use the interrupt button";
const ANSWER = 3, SILENCE = 15; // the kernel sends something every five seconds while the curve is live

const heard = (head, asked) => (head.heard || []).includes(asked.number);

// head: header of the data, or null.  gone: true if the page has lost the kernel.  asked: number and time of the last
// message to the kernel, which answers with its number in head.heard.  news: time of the last data.
function buttonsOf(head, gone, asked, news, now) {
  const state = head ? head.state : "running", going = ["running", "paused"].includes(state);
  const silent = now - news > SILENCE, lost = state !== "ended" && (gone || silent);
  const arrives = !!head && heard(head, asked), late = !arrives && now - asked.at > ANSWER;
  const parts = ((head && head.status) || "waiting for the first value").split(" · ");
  const over = gone ? "the kernel is gone, and this run with it" : `no news for ${Math.round(now - news)} s: the kernel may be gone`;
  const said = state === "ended" || lost ? "" : (head && head.note) || (going && late ? LATE : "");
  return {
    label: state === "paused" ? "resume" : "pause",
    hidden: state === "ended" || (lost && gone),
    disabled: lost || !going || !arrives || !head.controls,
    said,
    status: lost ? [over, ...parts.filter((part) => part !== "paused" && !part.endsWith(" left"))].join(" · ") : parts.join(" · "),
  };
}
