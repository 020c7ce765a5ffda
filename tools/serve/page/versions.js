// Versions of a turn: an answer that was generated again, or a question that was edited, keeps the old one.
//
//   turn.versions  {at, others}: `others` are the other versions in their order, each a list of turns: the version and the turns
//                  that followed it. The shown version is number `at` of all. Only a shown turn has versions.
//
// The versions with the same question are those of its answer; the others have other questions.

// Returns the versions of a turn, in their order.
export function versionsOf(turn) {
  const {at, others} = turn.versions ?? {at: 0, others: []};
  return others.map(([first]) => first).toSpliced(at, 0, turn);
}

// Shows a new version of the turn at `index`, without those after it, which stay with the old version.
export function addVersion(turns, index, turn) {
  const all = [...hideTurns(turns, index), [turn]];
  showTurns(turns, all, all.length - 1);
}

// Shows another version of the turn at `index`, with the turns that followed it.
export function showVersion(turns, index, number) {
  showTurns(turns, hideTurns(turns, index), number);
}

// Removes the turns from `index` on. Returns all versions of the first of them.
function hideTurns(turns, index) {
  const hidden = turns.splice(index);
  const {at, others} = hidden[0].versions ?? {at: 0, others: []};
  delete hidden[0].versions;
  return others.toSpliced(at, 0, hidden);
}

function showTurns(turns, all, number) {
  const shown = all[number];
  shown[0].versions = {at: number, others: all.toSpliced(number, 1)};
  turns.push(...shown);
}

// Returns the turns and, in any depth, those of their other versions.
export function allTurns(turns) {
  return turns.flatMap((turn) => [turn, ...(turn.versions?.others ?? []).flatMap(allTurns)]);
}

// Returns the places at which the arrows of a turn's question and of its answer lead: {at, numbers}, where `numbers` are versions
// of the turn and the shown one is at the place `at`. The arrows of a question lead to the newest answer of each.
export function choicesOf(turn) {
  const versions = versionsOf(turn);
  const answers = [...versions.keys()].filter((number) => versions[number].question === turn.question);
  const newest = new Map(versions.map((version, number) => [version.question, number]));
  const questions = [...newest.values()];
  return {
    question: {at: [...newest.keys()].indexOf(turn.question), numbers: questions},
    answer: {at: answers.indexOf(versions.indexOf(turn)), numbers: answers},
  };
}
