// The page on which a repository is chosen where none is open.

import { setUpTheme } from "./lib/preferences.js";
import { showRepositories } from "./repositories/repositories.js";

setUpTheme();
showRepositories();
