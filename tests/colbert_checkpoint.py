"""Makes ColBERT checkpoints as `save_pretrained` writes them: BERT, projection, tokenizer.

Needs torch and transformers. The weights are random, yet so that each token keeps a direction
of its own: text that holds the words of the question gets the higher score.
"""

from __future__ import annotations

from pathlib import Path

SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_.,:()[]{}'\"=/-#"
WORDS = ("session", "cookie", "expire", "basket", "total", "price", "return", "self", "the", "of")


def make_checkpoint(
    folder: Path,
    *,
    hidden: int = 32,
    layers: int = 1,
    dimensions: int = 96,
    projection: bool = True,
    positions: int = 128,
    seed: int = 7,
    safe: bool = True,
) -> Path:
    """Write a checkpoint to `folder` and give it; the loader wants `small` in a path of 96."""
    import torch
    from torch import nn
    from transformers import BertConfig, BertModel, BertPreTrainedModel, BertTokenizerFast

    class Checkpoint(BertPreTrainedModel):  # type: ignore[misc]
        def __init__(self, config: BertConfig) -> None:
            super().__init__(config)
            self.bert = BertModel(config)
            if projection:
                self.linear = nn.Linear(config.hidden_size, dimensions, bias=False)
            self.init_weights()

    vocabulary = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(vocabulary)) + "\n")
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(vocabulary) if hidden < 100 else 30_522,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 32 or 1,
        intermediate_size=4 * hidden,
        max_position_embeddings=positions,
        hidden_dropout_prob=0.0,
    )
    model = Checkpoint(config)
    with torch.no_grad():
        # Layers that add little leave each token its own direction: equal words score high.
        for name, weight in model.bert.encoder.named_parameters():
            if name.endswith("dense.weight"):
                weight.mul_(0.1)
        model.bert.embeddings.position_embeddings.weight.zero_()
        words = model.bert.embeddings.word_embeddings.weight.normal_()
        # The masks that fill a question up are near what stands in every text.
        words[SPECIAL.index("[MASK]")] = words[SPECIAL.index("[CLS]")]
        if projection:
            model.linear.weight.normal_()
    model.save_pretrained(folder, safe_serialization=safe)
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(
        folder
    )
    return folder
