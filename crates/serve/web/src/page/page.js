// What the listing does beside being read: upload with resume, new folder, rename, delete.
// Everything goes through the same addresses that programs use.
"use strict";
(() => {
  const PART = 16 * 1024 * 1024, TRIES = 8;
  const writable = document.body.dataset.writable === "true";
  const at = (id) => document.getElementById(id);
  const here = new URL("./", location.href);

  for (const time of document.querySelectorAll("time")) {
    const when = new Date(time.dateTime);
    const pad = (n) => String(n).padStart(2, "0");
    time.textContent = `${when.getFullYear()}-${pad(when.getMonth() + 1)}-${pad(when.getDate())} ` +
      `${pad(when.getHours())}:${pad(when.getMinutes())}`;
  }

  async function ask(method, url, headers = {}) {
    const answer = await fetch(url, { method, headers, redirect: "error" });
    if (!answer.ok) throw Object.assign(new Error((await answer.text()).trim() || answer.statusText), { status: answer.status });
    return answer;
  }
  const say = (error) => alert(error.message || String(error));

  function button(text, label, act) {
    const made = document.createElement("button");
    made.textContent = text;
    made.title = made.ariaLabel = label;
    made.onclick = act;
    return made;
  }

  if (writable) {
    for (const row of document.querySelectorAll("#list tbody tr:not(.up)")) {
      const link = row.querySelector("a"), name = link.textContent.replace(/\/$/, "");
      row.querySelector(".act").append(
        button("Rename", `Rename ${name}`, async () => {
          const to = prompt("New name", name);
          if (!to || to === name) return;
          const slash = row.className === "directory" ? "/" : "";
          const target = new URL("./" + encodeURIComponent(to) + slash, here);
          await ask("MOVE", link.href, { Destination: target.href, Overwrite: "F" }).then(() => location.reload(), say);
        }),
        button("Delete", `Delete ${name}`, async () => {
          if (!confirm(`Delete ${name}?`)) return;
          await ask("DELETE", link.href).then(() => row.remove(), say);
        }));
    }
    at("folder").hidden = false;
    at("folder").onclick = async () => {
      const name = prompt("Name of the new folder");
      if (name) await ask("MKCOL", new URL("./" + encodeURIComponent(name) + "/", here)).then(() => location.reload(), say);
    };
  }
  if (!writable || document.body.dataset.uploads !== "true") return;

  // One upload: begun by POST, sent in parts by PATCH, asked by HEAD how far it has come.
  function send(url, part, offset, progress) {
    return new Promise((done, failed) => {
      const request = new XMLHttpRequest();
      request.open("PATCH", url);
      request.setRequestHeader("Upload-Offset", offset);
      request.setRequestHeader("Content-Type", "application/offset+octet-stream");
      request.upload.onprogress = (e) => progress(offset + e.loaded);
      request.onload = () => request.status < 300
        ? done(Number(request.getResponseHeader("Upload-Offset")))
        : failed(Object.assign(new Error(request.responseText.trim() || request.statusText), { status: request.status }));
      request.onerror = request.onabort = () => failed(new Error("The connection broke."));
      request.send(part);
    });
  }

  async function begin(url, file, replace) {
    const headers = { "Upload-Length": file.size, "Upload-Modified": Math.floor(file.lastModified / 1000) };
    if (!replace) headers["If-None-Match"] = "*";
    return (await ask("POST", url + "?upload", headers)).headers.get("Location");
  }

  async function upload(path, file) {
    const row = document.createElement("li"), name = document.createElement("span");
    const said = document.createElement("span"), bar = document.createElement("progress");
    let stopped = false, place = null;
    const stop = button("Cancel", `Cancel ${path}`, () => { stopped = true; });
    name.textContent = path;
    said.className = "said";
    bar.max = file.size || 1;
    bar.value = 0;
    row.append(name, said, stop, bar);
    at("transfers").append(row);
    const progress = (bytes) => {
      bar.value = bytes;
      said.textContent = `${Math.floor(100 * bytes / (file.size || 1))} %`;
    };
    try {
      const url = new URL("./" + path.split("/").map(encodeURIComponent).join("/"), here).href;
      place = await begin(url, file, false).catch((error) => {
        if (error.status !== 412) throw error;
        if (!confirm(`Replace ${path}?`)) throw new Error("left as it was");
        return begin(url, file, true);
      });
      let offset = 0, tries = 0;
      do {
        if (stopped) throw new Error("cancelled");
        try {
          offset = await send(place, file.slice(offset, offset + PART), offset, progress);
          tries = 0;
        } catch (error) {
          if (error.status && error.status !== 409 && error.status !== 423 && error.status < 500) throw error;
          if (++tries > TRIES) throw error;
          said.textContent = "waiting to go on";
          await new Promise((later) => setTimeout(later, 250 * 2 ** tries));
          const known = await ask("HEAD", place).catch(() => null);
          if (known) offset = Number(known.headers.get("Upload-Offset"));
        }
      } while (offset < file.size);
      row.className = "done";
      said.textContent = "done";
    } catch (error) {
      row.className = "wrong";
      said.textContent = error.message;
      if (place) ask("DELETE", place).catch(() => {});
    }
    stop.remove();
    bar.remove();
    return row.className === "done";
  }

  let queue = Promise.resolve(), pending = 0, wrong = 0;
  function take(files) {
    for (const [path, file] of files) {
      pending++;
      queue = queue.then(() => upload(path, file)).then((good) => {
        wrong += good ? 0 : 1;
        if (--pending === 0 && wrong === 0) location.reload();
      });
    }
  }

  // What was dropped: files, and folders with all that is in them.
  async function walk(entry, prefix, found) {
    const path = prefix + entry.name;
    if (entry.isFile) {
      found.push([path, await new Promise((done, failed) => entry.file(done, failed))]);
      return;
    }
    const url = new URL("./" + path.split("/").map(encodeURIComponent).join("/") + "/", here);
    await ask("MKCOL", url).catch((error) => { if (error.status !== 405) throw error; });
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((done, failed) => reader.readEntries(done, failed));
      if (some.length === 0) return;
      for (const one of some) await walk(one, path + "/", found);
    }
  }

  at("upload").hidden = false;
  at("upload").onclick = () => at("files").click();
  at("files").onchange = () => take([...at("files").files].map((file) => [file.name, file]));
  let inside = 0;
  addEventListener("dragenter", (e) => { e.preventDefault(); inside++; at("drop").hidden = false; });
  addEventListener("dragleave", () => { if (--inside <= 0) { inside = 0; at("drop").hidden = true; } });
  addEventListener("dragover", (e) => e.preventDefault());
  addEventListener("drop", async (e) => {
    e.preventDefault();
    inside = 0;
    at("drop").hidden = true;
    const entries = [...e.dataTransfer.items].map((item) => item.webkitGetAsEntry && item.webkitGetAsEntry());
    const found = [];
    try {
      for (const entry of entries.filter(Boolean)) await walk(entry, "", found);
    } catch (error) { say(error); }
    take(found);
  });
  addEventListener("beforeunload", (e) => { if (pending > 0) e.preventDefault(); });
})();
