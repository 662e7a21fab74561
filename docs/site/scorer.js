// Guides come first: a page of the API is found by its name, or after them.
var Scorer = {
  score: ([docname, title, anchor, descr, score]) =>
    docname.startsWith("docs/reference/api/") ? score / 10 : score,
  objNameMatch: 11,
  objPartialMatch: 2,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
