/* What this browser keeps: read and written, and never missed. Storage may be full or forbidden; then
   only this page remembers. Whose it is and when it goes is private.js's part. */

export function remember(storage, name, value) {
  try {
    const empty = value === "" || (Array.isArray(value) && value.length === 0);
    if (empty) storage.removeItem(name);
    else storage.setItem(name, JSON.stringify(value));
  } catch {
    return;
  }
}

export function recall(storage, name, otherwise) {
  try {
    const text = storage.getItem(name);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}
