/* Adds and removes rows of the rules for tools. What a row holds is the server's to draw and to judge: a new
   one is a copy of the row in the template, with the next free number in its names. */

for (const table of document.querySelectorAll("[data-rules]")) {
  const list = table.querySelector(".rule-rows");
  const status = table.querySelector("[role=status]");
  const add = table.querySelector("[data-add]");
  let next = Number(table.dataset.next);

  const number = () => {
    for (const [place, row] of [...list.children].entries()) {
      row.querySelector("[data-number]").textContent = table.dataset.numbered.replace("{n}", place + 1);
      row.querySelector("[data-remove]").hidden = false;
    }
  };

  add.hidden = false;
  add.addEventListener("click", () => {
    const blank = table.querySelector("template").innerHTML.replaceAll("__next__", next);
    next += 1;
    list.insertAdjacentHTML("beforeend", blank);
    number();
    list.lastElementChild.querySelector("input").focus();
    status.textContent = table.dataset.added;
  });

  list.addEventListener("click", (event) => {
    const button = event.target.closest("[data-remove]");
    if (button) {
      const row = button.closest(".rule-row");
      const neighbour = row.nextElementSibling ?? row.previousElementSibling;
      row.remove();
      number();
      (neighbour?.querySelector("[data-remove]") ?? add).focus();
      status.textContent = table.dataset.removed;
    }
  });

  number();
}
