// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl {

/// Tells the service manager that this process serves now, where one waits to hear it: a unit of
/// `Type=notify`, whose start returns then. Elsewhere does nothing.
/// Source: sd_notify(3), which is a datagram to the socket that NOTIFY_SOCKET names.
/// Throws: Error{kUnavailable} where nobody takes it at that socket.
void tell_service_manager_ready();

}  // namespace abl
