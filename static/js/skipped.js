// The files that are not indexed, by reason.

import { element, plural } from "./dom.js";

export function groupsOf(groups) {
  const list = element("div", { class: "groups" });
  for (const { reason, count, paths } of groups) {
    const more = count - paths.length;
    list.append(
      element("details", { open: groups.length === 1 || count <= 20 },
        element("summary", {}, reason, element("span", {}, plural(count, "file"))),
        element("ul", {},
          ...paths.map((path) => element("li", {}, path)),
          more > 0 ? element("li", { class: "more" }, `and ${more} more`) : null)),
    );
  }
  if (!groups.length) list.append(element("p", { class: "panel-message" }, "No file was skipped."));
  return list;
}
