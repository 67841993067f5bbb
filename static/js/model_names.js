// Names of models as providers list them.

const NO_CHAT = /embed|whisper|tts|dall-e|moderation/i;

/** Those of `names` that may write an answer; what embeds, listens, speaks or draws is left out. */
export const chatModels = (names) => names.filter((name) => !NO_CHAT.test(name));
