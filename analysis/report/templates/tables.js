"use strict";
// Long tables: choosing a page hides the rows of the others and unfolds what is left.
(function () {
  document.querySelectorAll(".foldable").forEach(function (table) {
    const filter = table.querySelector("label.filter"), fold = table.querySelector(".unfold");
    if (!filter) return;
    filter.hidden = false;
    filter.querySelector("select").addEventListener("change", function (event) {
      const page = event.target.value;
      if (page) fold.checked = true;
      table.querySelectorAll("tbody tr").forEach(function (row) {
        row.hidden = Boolean(page) && row.dataset.page !== page;
      });
    });
  });
})();
