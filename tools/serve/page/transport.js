// How a request reaches the server that sent this page. The page in one file has tools/page/transport.js in its place.

export const request = (path, options) => fetch(path, options);
