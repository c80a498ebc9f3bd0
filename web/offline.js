// Keeps the page for times without a network. The build fills in the version and the files.

const CACHE = "uncork-playground-VERSION";
const FILES = ["FILES"];

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(["./", ...FILES])));
});

self.addEventListener("activate", (event) => {
  const old = (name) => name.startsWith("uncork-playground-") && name !== CACHE;
  event.waitUntil(caches.keys().then((names) => Promise.all(names.filter(old).map((name) => caches.delete(name)))));
});

self.addEventListener("fetch", (event) => {
  event.respondWith(caches.open(CACHE).then((cache) => cache.match(event.request)).then((kept) => kept ?? fetch(event.request)));
});
