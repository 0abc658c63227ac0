// Follows the author: asks whether the course has changed, and loads the page anew.
(() => {
  "use strict";
  const { changes, version } = document.querySelector("[data-changes]").dataset;
  const ask = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(changes);
      if (answer.status === 403) location.reload(); // signed out meanwhile
      if (answer.ok && (await answer.text()) !== version) location.reload();
    } catch {
      // The server is being restarted: the next round asks again.
    }
  };
  setTimeout(() => setInterval(ask, 200), 700);
})();
