let kept = "auto";
const THEMES = ["auto", "light", "dark"];

/** Light, dark, or as the system has it; remembered where the browser lets a page do so. */
function theme(name) {
  try {
    if (name === undefined) return localStorage.getItem("mind-mlir-theme") ?? "auto";
    localStorage.setItem("mind-mlir-theme", name);
  } catch {
    // A file's page may have no memory.
  }
  kept = name ?? kept;
  return kept;
}

const DARK = window.matchMedia("(prefers-color-scheme: dark)");

function resolved(name) {
  return name === "auto" ? (DARK.matches ? "dark" : "light") : name;
}

function applyTheme(app, name) {
  document.documentElement.dataset.theme = resolved(name);
  forgetColours();
  for (const pane of app.panes) pane.redraw();
  app.dock.selected();
}

/** The head of the page: what it is about, which programs are shown, search and settings. */
function drawHead(app) {
  const { programs } = app.exploration;
  const [first] = app.shown;
  const [traced, instructions] = first?.traced ?? [0, 0];
  const share = instructions ? `${Math.floor((100 * traced) / instructions)}% traced` : "";
  const themeButton = button(
    "◐",
    "",
    () => {
      applyTheme(app, theme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]));
      nameTheme();
    },
    { class: "icon" },
  );
  const nameTheme = () => {
    const name = { auto: "as the system", light: "light", dark: "dark" }[theme()];
    themeButton.title = `Colours: ${name}`;
    themeButton.setAttribute("aria-label", themeButton.title);
  };
  nameTheme();
  document.getElementById("head").replaceChildren(
    make(
      "h1",
      {},
      make("span", { class: "logo", "aria-hidden": "true" }, "λ"),
      make("span", {}, [...new Set(app.shown.map((program) => program.title))].join(" and ")),
    ),
    make(
      "span",
      {
        class: "facts",
        title: share
          ? `${grouped(traced)} of ${grouped(instructions)} machine instructions belong to operations of the program`
          : "",
      },
      programs.length === 1 ? [first.target, share].filter(Boolean).join(" · ") : "",
    ),
    programs.length > 1 ? programSwitch(app) : "",
    make("span", { class: "room" }),
    app.finder.element,
    button("▥", "Show or hide the views (v)", () => app.dock.toggle(), {
      class: "icon",
      id: "dock-button",
      "aria-pressed": String(app.dock.open),
    }),
    themeButton,
    button("?", "Keys (?)", showHelp, { class: "icon" }),
  );
}

/** Which of several programs are shown: one, or the first beside another. */
function programSwitch(app) {
  const { programs } = app.exploration;
  const choices = [
    ...programs.map((program) => [program]),
    ...programs.slice(1).map((program) => [programs[0], program]),
  ];
  const same = (one) => one.length === app.shown.length && one.every((program, at) => program === app.shown[at]);
  return make(
    "div",
    { class: "switch", role: "group", "aria-label": "Programs" },
    ...choices.map((choice) =>
      make(
        "button",
        {
          ...{
            type: "button",
            "aria-pressed": String(same(choice)),
            title: choice.map((program) => app.named(program)).join("\nbeside\n"),
          },
          onclick: () => app.setShown(choice),
        },
        choice.map((program) => app.letter(program)).join(" ⇄ "),
        choice.length === 1 ? make("span", { class: "muted" }, ` ${distinction(choice[0], programs)}`) : null,
      ),
    ),
  );
}

/** What tells a program from the others: its title, or its target where titles are the same. */
function distinction(program, programs) {
  return programs.some((other) => other !== program && other.title === program.title)
    ? program.target.split(":")[0]
    : program.title;
}

const KEYS = [
  ["/", "search all stages"],
  ["n  p", "the next and the previous line that was found"],
  ["↑ ↓  PgUp PgDn  Home End", "select lines, in the pane with the focus"],
  ["← →", "the pane to the left, to the right"],
  ["]  [", "the next and the previous place of the selection in this pane"],
  ["d  D", "the next and the previous difference of two programs"],
  ["g  o  m  t  s", "graph, operations, memory, timeline, stages"],
  ["v", "show or hide the views"],
  ["Esc", "clear the selection, then the search"],
  ["?", "this list"],
  ["Ctrl + click", "add to the selection"],
  ["in the graph: arrows", "to what an operation reads, to what reads it, to its neighbours; + - 0 for the size"],
];

function showHelp() {
  const dialog = document.getElementById("help");
  if (!dialog.firstChild) {
    const rows = KEYS.flatMap(([keys, what]) => [
      make("dt", {}, ...keys.split("  ").map((key) => make("kbd", {}, key))),
      make("dd", {}, what),
    ]);
    dialog.append(
      make("h2", { id: "help-title" }, "Keys"),
      make("dl", {}, ...rows),
      make("form", { method: "dialog" }, make("button", { class: "pill" }, "Close")),
    );
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  }
  if (!dialog.open) dialog.showModal();
}

/** What a key does anywhere in the page; null where it does nothing. */
function keyAction(app, event) {
  const beside = (step) => {
    const pane = app.panes[app.panes.indexOf(app.active) + step];
    if (!pane) return;
    app.focus(pane);
    pane.list.element.focus();
  };
  const actions = {
    "/": () => {
      app.finder.input.focus();
      app.finder.input.select();
    },
    n: () => app.finder.step(1),
    N: () => app.finder.step(-1),
    p: () => app.finder.step(-1),
    d: () => nextDifference(app, 1),
    D: () => nextDifference(app, -1),
    "]": () => app.active?.step(1),
    "[": () => app.active?.step(-1),
    v: () => app.dock.toggle(),
    "?": showHelp,
    ArrowLeft: () => beside(-1),
    ArrowRight: () => beside(1),
    Escape: () => (app.selected.key || app.selected.operations.length ? app.clear() : app.finder.set("")),
  };
  for (const [name, { key }] of Object.entries(VIEWS)) {
    actions[key] = () => {
      app.dock.show(name);
      app.dock.toggle(true);
    };
  }
  const down = { ArrowDown: 1, ArrowUp: -1, PageDown: 1, PageUp: -1, Home: 1, End: 1 }[event.key];
  if (down && document.activeElement === document.body && app.active) {
    return () => {
      app.active.list.element.focus();
      app.active.list.key(event);
    };
  }
  return actions[event.key] ?? null;
}

function listen(app) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest("input, select, textarea, dialog")) return;
    const action = keyAction(app, event);
    if (!action) return;
    action();
    event.preventDefault();
  });
  DARK.addEventListener("change", () => applyTheme(app, theme()));
}

function start() {
  document.documentElement.dataset.theme = resolved(theme());
  const app = new App(new Exploration(JSON.parse(document.getElementById("data").textContent)));
  const show = () => {
    recall(app);
    drawHead(app);
  };
  show();
  window.addEventListener("hashchange", show);
  // A frame of a notebook may have no width before it is shown.
  NARROW.addEventListener("change", () => {
    if (!NARROW.matches) show();
    else if (app.active) app.setPanes([{ key: app.active.key, share: 1 }]);
  });
  listen(app);
  document.getElementById("hint").textContent = "? for keys";
}

start();
