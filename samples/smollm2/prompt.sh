#!/usr/bin/env bash
# prompt.sh QUESTION: the question as SmolLM2's chat template has it; what follows is the answer.
printf '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n'
printf '<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n' "$1"
