/** A pane beside one of another program shows the same place. */
function follow(app, pane) {
  if (!pane.changes || pane !== app.active) return;
  const line = pane.changes.across(pane.side, pane.list.firstSeen());
  const { element, count } = pane.other.list;
  element.scrollTop = topOf(line, element.clientHeight, count);
}

/** Go to the next difference of the panes that are compared, or to the previous one. */
function nextDifference(app, step) {
  const pane = app.active?.changes ? app.active : app.panes.find((each) => each.changes);
  const several = app.exploration.programs.length > 1;
  if (!pane) return app.say(several ? "No stage of both programs is shown." : "There is only one program.");
  const places = pane.differences();
  if (!places.length) return app.say(`The programs have the same ${pane.stage.title}.`);
  app.focus(pane);
  pane.step(step, places);
  const { current } = pane.list;
  const number = places.findIndex(([first]) => first === current);
  const line = Math.min(pane.other.stage.text.count - 1, pane.changes.across(pane.side, current));
  pane.other.list.go(line, current - pane.list.firstSeen());
  return app.say(`Difference ${grouped(number + 1)} of ${grouped(places.length)} in ${pane.stage.title}`);
}
