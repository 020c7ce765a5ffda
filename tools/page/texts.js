// The texts that only the page in one file has, or has in other words.

import {addTexts} from './language.js';

addTexts({
  welcomeNote: ['Everything runs in this page, also without a network.', '一切都在此页面中运行，无需联网。'],
  openModel: ['Open a checkpoint', '打开检查点'],
  openModelLabel: ['Open a checkpoint: .pth, .safetensors with tokenizer.json, or .gguf', '打开检查点：.pth、.safetensors 连同 tokenizer.json，或 .gguf'],
  dropHere: ['Drop the checkpoint here: it stays in this browser', '将检查点放在这里：文件不会离开此浏览器'],
  readingModel: ['Reading {}: {} of {} MB', '正在读取 {}：{} / {} MB'],
  preparingModel: ['Preparing {}', '正在准备 {}'],
  openedModel: ['{} is ready.', '{} 已就绪。'],
  keepModel: ['Keep it in this browser', '保存在此浏览器中'],
  keptModel: ['This browser keeps {}.', '此浏览器保存着 {}。'],
  notKept: ['Not kept: {}', '未能保存：{}'],
  noStorage: ['the storage of this page is full or disabled', '此页面的存储空间已满或被禁用'],
  forgetModel: ['Forget it', '删除'],
  forgotModel: ['This browser keeps no checkpoint now.', '此浏览器不再保存检查点。'],
  notOpened: ['Not opened: {}', '未能打开：{}'],
  noCheckpoint: ['none of the files is a .pth, .pt, .bin, .safetensors or .gguf', '其中没有 .pth、.pt、.bin、.safetensors 或 .gguf 文件'],
  manyCheckpoints: ['{} and {} are two checkpoints, expected one', '{} 和 {} 是两个检查点，应只有一个'],
  tokenizerMissing: ['{} has no tokenizer: choose its tokenizer.json, too, both at once', '{} 没有分词器：请同时选择它的 tokenizer.json'],
  truncated: ['this page is truncated; download it again', '此页面不完整；请重新下载'],
  starting: ['Starting…', '正在启动…'],
  broken: ['{}; the engine was started again: open your checkpoint once more', '{}；引擎已重新启动：请再次打开检查点'],
  unreachable: ['The engine does not answer. Open this page again.', '引擎没有响应。请重新打开此页面。'],
  brokenOff: ['The answer broke off. The text so far is kept.', '回答中断。已保留目前的文本。'],
  badAnswer: ['The engine’s answer is not one of its forms.', '引擎的回答格式不符。'],
  rejected: ['The engine rejected the request: {}', '引擎拒绝了请求：{}'],
  failed: ['The engine failed: {}', '引擎出错：{}'],
  statusError: ['The engine answered with status {}.', '引擎返回状态 {}。'],
  noProbability: ['The engine gave no probability.', '引擎未给出概率。'],
});
