/* Behind all other scripts: what the page begins with. */
"use strict";
window.Transduce.start();
