/* The forms of the page of the API: each sends its request and shows the answer. */
"use strict";
(function () {
  async function send(form) {
    const { method, path } = form.dataset;
    const headers = {},
      key = document.getElementById("key")?.value;
    if (key) headers["x-api-key"] = key;
    let body = form.elements.body?.value;
    if (form.dataset.form) {
      const fields = Object.entries(JSON.parse(body));
      body = new FormData();
      body.append("file", form.elements.file.files[0]);
      for (const [name, value] of fields) body.append(name, value);
    } else if (body !== undefined) headers["content-type"] = "application/json";
    const answer = await fetch(path, { method: method.toUpperCase(), headers, body });
    return `${answer.status}\n${await answer.text()}`;
  }

  for (const form of document.querySelectorAll("form"))
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const shown = form.querySelector("output");
      shown.textContent = "…";
      shown.textContent = await send(form).catch((error) => String(error));
    });
})();
