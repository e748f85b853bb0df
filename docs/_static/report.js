// The filter of the claims table. Without it the page shows the whole table.
const form = document.getElementById("filter");

if (form) {
  const rows = [...document.querySelectorAll("table.claims tbody tr[data-paper]")];
  const asked = new URLSearchParams(location.search);
  const values = () => Object.fromEntries(new FormData(form));

  const apply = () => {
    const { paper, verdict, artifact } = values();
    for (const row of rows) {
      row.hidden = Boolean(
        (paper && row.dataset.paper !== paper) ||
        (artifact && row.dataset.artifact !== artifact) ||
        (verdict && !row.dataset.verdict.split(" ").includes(verdict)));
    }
    const shown = rows.filter((row) => !row.hidden).length;
    form.querySelector("output").textContent = `${shown} of ${rows.length} claims`;
  };

  for (const [name, value] of asked) {
    if (form.elements[name]) form.elements[name].value = value;
  }
  form.addEventListener("change", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));  // after the browser has reset the fields
  form.hidden = false;
  apply();
}
