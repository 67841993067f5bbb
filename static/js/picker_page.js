// The list of repositories: on the page where none is open, and as a dialog of the page of one.

import { setUpTheme } from "./lib/preferences.js";
import { byId } from "./lib/dom.js";
import { leaveToInputMethod, takeFiles } from "./lib/fields.js";
import { setUpRepositoriesDialog, showRepositories } from "./repositories/repositories.js";

if (byId("repositories-dialog")) setUpRepositoriesDialog();
else {
  addEventListener("keydown", leaveToInputMethod, true);
  takeFiles(() => {}); // nothing here takes a file
  setUpTheme();
  showRepositories();
}
