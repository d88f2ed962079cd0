/**
 * What the browser keeps for one console: nothing where it keeps nothing, as for a page from a file.
 *
 * @param kind `localStorage` for as long as the browser has it, `sessionStorage` for this window
 */
export function readStored<T>(kind: 'localStorage' | 'sessionStorage', name: string, otherwise: T): T {
  try {
    const text = globalThis[kind].getItem(name);
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}

/** @returns false where the browser keeps nothing */
export function store(kind: 'localStorage' | 'sessionStorage', name: string, value: unknown): boolean {
  try {
    globalThis[kind].setItem(name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
