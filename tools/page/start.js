// Starts the page in one file: the chat page, and what it has beside.

import './texts.js';
import './checkpoint.js';
import './page.js';
