/* The fold in which a model is picked: it offers only the efforts that the chosen model knows. What the
   server is sent is judged there. */

function fit(choice) {
  const chosen = choice.querySelector('[name="model"]:checked');
  const known = (chosen?.dataset.efforts ?? "").split(" ").filter(Boolean);
  choice.querySelector("[data-efforts-of-model]").hidden = known.length === 0;
  for (const effort of choice.querySelectorAll('[name="effort"]')) {
    const fits = effort.value === "" || known.includes(effort.value);
    effort.disabled = !fits;
    effort.parentElement.hidden = !fits;
    if (!fits && effort.checked) choice.querySelector('[name="effort"][value=""]').checked = true;
  }
}

document.addEventListener("change", (event) => {
  const choice = event.target.closest?.("[data-model-choice]");
  if (choice && event.target.name === "model") fit(choice);
});

// Who names another model means it.
document.addEventListener("input", (event) => {
  if (event.target.name !== "other_model") return;
  const choice = event.target.closest("[data-model-choice]");
  choice.querySelector('[name="model"][value="other"]').checked = true;
  fit(choice);
});
