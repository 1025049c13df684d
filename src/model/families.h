// One function per family file.
#pragma once

#include "model/family.h"

namespace hone {

const Family& chatglm3_family();
const Family& deepseek_family();
const Family& gemma2_family();
const Family& gemma3_family();
const Family& glm4_family();
const Family& llama_family();
const Family& mistral_family();
const Family& olmo2_family();
const Family& phi3_family();
const Family& qwen2_family();
const Family& qwen2_moe_family();
const Family& qwen3_family();
const Family& qwen3_moe_family();

}  // namespace hone
