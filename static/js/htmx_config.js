// Set before htmx starts, which is when the document has been read.
if (window.htmx) Object.assign(htmx.config, {
  allowEval: false,
  includeIndicatorStyles: false,
  historyCacheSize: 0,
  defaultSettleDelay: 0,
  attributesToSettle: ["class", "width", "height"],
  refreshOnHistoryMiss: true,
  selfRequestsOnly: true,
  responseHandling: [
    { code: "204", swap: false },
    { code: "[23]..", swap: true },
    { code: "50[2347]", swap: false, error: true },
    { code: "[45]..", swap: true, error: true },
  ],
});
