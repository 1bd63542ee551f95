/* Files: chosen or dropped, translated by the server, and saved under the name of the language. */
"use strict";
(function (T) {
  const place = (id) => document.getElementById(id);
  const [choose, input, source, told, link] = ["choose", "file", "source", "file-status", "download"].map(place);
  let asking = new AbortController(),
    shown = ["", {}]; // the status: a key of the texts with its values

  function status(name, values = {}, wrong = false) {
    shown = [name, values];
    told.textContent = T.say(name, values);
    told.classList.toggle("wrong", wrong);
    link.hidden = true;
  }

  /** letter.txt -> letter.fr.txt */
  const renamed = (name, target) => name.replace(/(\.[^.]+)$/, `.${target}$1`);

  async function translate(file) {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const [from, to, key] = ["from", "to", "key"].map((id) => place(id).value);
    const values = { file: file.name, formats: T.data.files.join(" "), most: T.data.bytes };
    if (!T.data.files.some((ending) => file.name.toLowerCase().endsWith(ending)))
      return status("error.format", values, true);
    if (file.size > T.data.bytes) return status("error.file.large", values, true);
    if (T.data.key && !key) return status("error.key", {}, true);
    status("file.working", values);
    try {
      const translation = await T.translateFile(file, from, to, key, signal);
      if (!signal.aborted) save(translation, renamed(file.name, to));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof T.Refused)) throw error;
      status(...error.told, true);
    }
  }

  function save(blob, name) {
    if (link.href) URL.revokeObjectURL(link.href);
    link.href = URL.createObjectURL(blob);
    link.download = link.textContent = name;
    status("file.done");
    link.hidden = false;
    link.click();
  }

  const holdsFiles = (event) => event.dataTransfer.types.includes("Files");
  choose.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    if (input.files.length) translate(input.files[0]);
    input.value = ""; // so that the same file can be chosen again
  });
  input.accept = T.data.files.join(",");
  for (const name of ["dragover", "drop"])
    source.addEventListener(name, (event) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      source.classList.toggle("over", name === "dragover");
      if (name === "drop" && event.dataTransfer.files.length) translate(event.dataTransfer.files[0]);
    });
  source.addEventListener("dragleave", () => source.classList.remove("over"));

  T.onFrame(() => {
    choose.textContent = T.say("file");
    choose.title = T.data.files.join(" ");
    told.textContent = shown[0] && T.say(...shown);
  });
})(window.Transduce);
