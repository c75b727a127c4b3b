/** Write what is shown into the address, so that it can be opened again and sent to others. */
function remember(app) {
  if (!app.ready) return;
  const { dock, selected, finder } = app;
  const address = toAddress({
    ...{ panes: app.listed(), view: dock.open ? dock.view : "", dock: dock.size, side: dock.right },
    line: selected.key ? `${selected.key}.${selected.line + 1}` : null,
    operations: selected.key ? [] : (selected.operations[app.shown[0]?.number] ?? []).slice(0, 50),
    ...{ query: finder.input.value, regular: finder.regular },
  });
  try {
    history.replaceState(null, "", `#${address}`);
  } catch {
    // A page within a notebook has no address of its own.
  }
}

/** Show what the address says, and what is usual where it says nothing. */
function recall(app) {
  const state = fromAddress(location.hash);
  const { dock, finder } = app;
  dock.right = state.side ?? window.innerWidth >= 1100;
  dock.size = state.dock ?? Math.round((dock.right ? window.innerWidth : window.innerHeight) * 0.36);
  dock.open = state.view === null ? !NARROW.matches : state.view !== "";
  const panes = state.panes
    .filter(({ key }) => app.exploration.stage(key))
    .slice(0, NARROW.matches ? 1 : undefined);
  const programs = new Set(panes.map(({ key }) => app.exploration.stage(key).program));
  if (programs.size) app.shown = [...programs].sort((one, other) => one.number - other.number).slice(0, 2);
  app.arrange();
  app.setPanes(panes.length ? panes : usualPanes(app));
  dock.show(state.view || "graph", app.shown[0]);
  dock.selected();
  if (state.regular) finder.setRegular(true);
  if (state.query) finder.set(state.query);
  const [, key, line] = /^(.*)\.(\d+)$/.exec(state.line ?? "") ?? [];
  const pane = key ? app.pane(key) : null;
  const known = state.operations.filter((each) => each < (app.shown[0]?.operations.length ?? 0));
  if (pane && line >= 1 && line <= pane.stage.text.count) {
    pane.list.go(line - 1, 8);
    app.choose(pane, line - 1, false);
  } else if (known.length) app.chooseOperations(app.shown[0], known);
  app.ready = true;
}

/** What is shown at first: the source and the machine's code, or the first stage at which two programs differ. */
function usualPanes(app) {
  const [first, second] = app.shown;
  if (!first?.stages.length) return [];
  const { stages } = first;
  let chosen = [stages[0], stages.at(-1)];
  if (NARROW.matches) chosen = [stages[0]];
  else if (second)
    chosen = [
      stages.find(({ stage }) => app.exploration.changes(stage, first.number, second.number)?.count) ?? stages[0],
    ];
  else if (window.innerWidth >= 1700)
    chosen.splice(1, 0, stages.find(({ changes }) => changes.length) ?? stages[stages.length >> 1]);
  const programs = NARROW.matches ? [first] : app.shown;
  const keys = [...new Set(chosen)].flatMap(({ stage }) => programs.map((program) => program.stage(stage)?.key));
  return keys.filter(Boolean).map((key) => ({ key, share: 1 }));
}
