// What the browser keeps for this page. A browser may refuse to keep anything: then reading gives null and writing false.

const PLACES = {all: () => localStorage, tab: () => sessionStorage};

// What all tabs share, or what one tab keeps until it is closed.
export function read(name, of = 'all') {
  try {
    return JSON.parse(PLACES[of]().getItem(`minimind.${name}`));
  } catch {
    return null;
  }
}

export function write(name, value, of = 'all') {
  try {
    PLACES[of]().setItem(`minimind.${name}`, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

export function erase(name) {
  try {
    localStorage.removeItem(`minimind.${name}`);
  } catch {
    // Nothing was kept.
  }
}

// Returns the names that start with the prefix.
export function names(prefix) {
  try {
    return Object.keys(localStorage).filter((name) => name.startsWith(`minimind.${prefix}`)).map((name) => name.slice(9));
  } catch {
    return [];
  }
}
