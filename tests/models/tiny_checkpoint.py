"""A random Llama of a few thousand weights with a tokenizer of ASCII pieces and a chat template, saved to a folder."""

CORPUS = [
    "client = boto3.client('s3')\nresponse = client.list_buckets(Bucket='x', MaxKeys=10)\n",
    "from azure.storage import BlobClient\n# upload the file\nclient.upload_blob(name, data=data)\n",
]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>\n{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def save(folder, vocabulary=200):
    """Every token decodes to ASCII by itself, so the tokens of an answer spell it. Returns the folder."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    printable = [chr(code) for code in range(33, 127)]
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=["<unk>", "</s>"],
            initial_alphabet=printable,
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="</s>",
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(fast),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=512,
            bos_token_id=None,
            eos_token_id=fast.eos_token_id,
            pad_token_id=fast.pad_token_id,
            initializer_range=0.3,
        )
    )
    model.save_pretrained(folder)
    return folder
