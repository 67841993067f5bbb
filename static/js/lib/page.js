// The parts of the conversation page by their names. A script takes from here what it needs of the
// others at the moment it needs it; chat_page.js puts all of them in.

export const page = {
  repo: document.body.dataset.repo,
  name: document.body.dataset.name,
  view: null, // the conversation on the page
  settings: {}, // of the server, and the state of the index, as it last told them
};
