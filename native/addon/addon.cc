// The table of what bough.node exports. Loaded by helper/native/addon.ts.
#include "addon/functions.h"

namespace bough::addon {
namespace {

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("peerCredentials", Napi::Function::New(env, PeerCredentials));
  exports.Set("pidfdOpen", Napi::Function::New(env, PidfdOpen));
  exports.Set("pidfdSendSignal", Napi::Function::New(env, PidfdSendSignal));
  exports.Set("renameExchange", Napi::Function::New(env, RenameExchange));
  exports.Set("renameNoReplace", Napi::Function::New(env, RenameNoReplace));
  exports.Set("ficlone", Napi::Function::New(env, Ficlone));
  exports.Set("openPty", Napi::Function::New(env, OpenPty));
  exports.Set("resizePty", Napi::Function::New(env, ResizePty));
  exports.Set("probeKvm", Napi::Function::New(env, ProbeKvm));
  exports.Set("probeFuse", Napi::Function::New(env, ProbeFuse));
  return exports;
}

NODE_API_MODULE(bough, Init)

}  // namespace
}  // namespace bough::addon
