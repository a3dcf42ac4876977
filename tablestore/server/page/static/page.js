// Remembers the colours that were chosen, shows jobs as they change, and puts looked-up names into a query. Pages work without it.
"use strict";
(() => {
  const root = document.documentElement;
  let chosen = null;
  try { chosen = localStorage.getItem("tablestore-theme"); } catch { /* no storage */ }
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  document.addEventListener("DOMContentLoaded", () => {
    const radio = document.getElementById(`theme-${root.dataset.theme || "auto"}`);
    if (radio) radio.checked = true;
    for (const one of document.querySelectorAll("input[name=theme]")) {
      one.addEventListener("change", () => {
        if (one.value === "auto") delete root.dataset.theme; else root.dataset.theme = one.value;
        try { localStorage.setItem("tablestore-theme", one.value); } catch { /* no storage */ }
      });
    }

    const jobs = document.querySelector("[data-events]");
    if (jobs && window.EventSource) {
      const status = document.getElementById("jobs-live");
      const events = new EventSource(jobs.dataset.events);
      events.addEventListener("jobs", (event) => {
        // The server has escaped every text of it; scripts in it would not run either.
        if (!jobs.contains(document.activeElement)) jobs.innerHTML = event.data;
        if (status) status.textContent = "It is up to date by itself.";
      });
      events.addEventListener("error", () => {
        if (status && events.readyState === EventSource.CLOSED) status.textContent = "The connection is gone: load the page again.";
      });
    }

    const name = document.querySelector("input[data-into]");
    if (name) {
      const text = document.getElementById(name.dataset.into);
      name.addEventListener("change", () => {
        if (![...name.list.options].some((option) => option.value === name.value)) return;
        text.setRangeText(name.value, text.selectionStart, text.selectionEnd, "end");
        name.value = "";
        text.focus();
      });
    }
  });
})();
